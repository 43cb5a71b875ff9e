"""The constraint IR."""
