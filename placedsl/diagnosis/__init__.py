"""Why there is no placement, and why the best one is no better."""
