"""The one error users see."""


class InputError(ValueError):
    """Bad input, told in one line: the file, the line, what was expected and what was found."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
