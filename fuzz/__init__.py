"""Damaged files for every reader: only :class:`InputError` may come out, and no row may vanish."""
