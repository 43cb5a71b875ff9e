"""Text to a checked problem: parsing, names, types, units, diagnostics, formatting."""
