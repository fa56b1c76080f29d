"""Coverage of intervals over simulated populations."""
