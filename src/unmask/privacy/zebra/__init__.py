"""ZEBRA: disclosure to an attacker, on average and in the worst case (Noé 2022)."""

from unmask.privacy.zebra.profiles import CalibrationDistortion, Disclosure, disclosure_of

__all__ = [
    "CalibrationDistortion",
    "Disclosure",
    "disclosure_of",
]
