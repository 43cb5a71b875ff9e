"""What a pipeline stage costs, per ideal or pair of ideals."""
