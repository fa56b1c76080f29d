"""The one error users see."""


class InputError(ValueError):
    """Bad input, told in one line: the ``place`` (file, line, option), what was ``expected`` there
    and what was ``found``; or any other line in place of all three.
    """

    def __init__(self, place: object, expected: object = None, found: object = None) -> None:
        line = f"{place}" if expected is None else f"{place}: expected {expected}, found {found}"
        super().__init__(" ".join(line.split()))
