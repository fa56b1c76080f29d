"""Do 95 % intervals hold the truth in 95 % of samples? Populations of known truth, drawn again."""
