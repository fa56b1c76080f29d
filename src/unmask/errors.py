"""The one error and the one warning users see."""


class InputError(ValueError):
    """Bad input, told in one line: the ``where`` (file, line, option), what was ``expected`` there
    and what is there, ``actual``; or any other line in place of all three.
    """

    def __init__(self, where: object, expected: object = None, actual: object = None) -> None:
        line = f"{where}" if expected is None else f"{where}: expected {expected}, found {actual}"
        super().__init__(" ".join(line.split()))


class UnmaskWarning(UserWarning):
    """What stands against reading a result as it is: one of its warnings, told when it is made."""
