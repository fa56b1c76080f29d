"""The one error and the one warning users see."""


class InputError(ValueError):
    """Bad input, told in one line.

    Parameters
    ----------
    where : object
        File, line or option; or any other line, where nothing else is given.
    expected : object, optional
        What was expected there.
    actual : object, optional
        What is there.

    Examples
    --------
    >>> import unmask as um
    >>> raise um.InputError("scores.txt, line 3", "a number", "high")
    Traceback (most recent call last):
    unmask.errors.InputError: scores.txt, line 3: expected a number, found high
    """

    def __init__(self, where: object, expected: object = None, actual: object = None) -> None:
        line = f"{where}" if expected is None else f"{where}: expected {expected}, found {actual}"
        super().__init__(" ".join(line.split()))


class UnmaskWarning(UserWarning):
    """A caveat of a result, told when the result is made.

    All of them stay in ``result.warnings``.

    Examples
    --------
    >>> import warnings
    >>> import unmask as um
    >>> warnings.simplefilter("ignore", um.UnmaskWarning)
    """
