"""Certificates: proofs of bounds that can be checked without what found them."""
