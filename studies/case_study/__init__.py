"""Trained attackers and the six systems of Li et al. (2022) on real voices."""
