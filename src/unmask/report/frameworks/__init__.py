"""One module per framework: which steps it takes, and the section that its results become."""
