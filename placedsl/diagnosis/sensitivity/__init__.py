"""Which constraints and resources keep an answer from being better."""
