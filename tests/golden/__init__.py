"""Golden digests: every number that a fixed set of workloads gives, pinned."""
