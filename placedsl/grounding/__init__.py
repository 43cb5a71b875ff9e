"""From formulas to the program: expressions to triplets by joins over index arrays."""
