"""Names, types and dimensions."""
