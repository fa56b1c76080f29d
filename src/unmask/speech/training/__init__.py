"""Training of speaker encoders: networks by gradient descent, i-vectors by EM."""
