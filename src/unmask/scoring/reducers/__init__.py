"""What becomes of the tiles of all pairs: small, addable summaries."""
