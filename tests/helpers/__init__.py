"""Data and checks that tests of several rooms share."""
