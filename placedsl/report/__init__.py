"""Reports on answers, one folder per kind of output."""
