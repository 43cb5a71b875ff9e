"""Searching for what a certificate needs besides what proved the bound: trees of cases, and proofs of another kind."""
