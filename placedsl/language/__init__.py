"""The language: text to a checked problem."""
