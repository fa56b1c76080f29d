"""Readers, one module per kind of file: bytes in, columns by role out."""
