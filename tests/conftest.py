"""Settings of all tests."""

from hypothesis import settings

settings.register_profile("unmask", max_examples=60, deadline=None, print_blob=True)
settings.load_profile("unmask")
