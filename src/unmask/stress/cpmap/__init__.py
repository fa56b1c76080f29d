"""C-P maps and delta C-P maps over trial configurations (Li 2022)."""
