"""How the data that travel with the package were made."""
