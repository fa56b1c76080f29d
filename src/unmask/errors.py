"""The one error users see."""


class InputError(ValueError):
    """Bad input, told in one line: the ``place`` (file, line, option), what was ``expected`` there
    and what is there, ``actual``; or any other line in place of all three.
    """

    def __init__(self, place: object, expected: object = None, actual: object = None) -> None:
        line = f"{place}" if expected is None else f"{place}: expected {expected}, found {actual}"
        super().__init__(" ".join(line.split()))
