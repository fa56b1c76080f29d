"""Ratios against floors and naive definitions, measured in the same run."""
