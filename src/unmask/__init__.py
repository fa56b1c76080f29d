"""Measure how recognisable a voice is."""

from unmask._version import __version__

__all__ = ["__version__"]
