"""One file a solver."""
