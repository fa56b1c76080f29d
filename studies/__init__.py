"""Found out, not timed: intervals and luck simulated, the case study, data of the package."""
