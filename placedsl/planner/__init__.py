"""Which path fits a problem, and walking it."""
