"""What can go wrong. Messages say what was found, what was expected, where, and what to do."""


class AlbumError(Exception):
    """Anything that album refuses or fails at."""


class ConfigError(AlbumError, ValueError):
    """A hyperparameter, an option or a name that cannot be."""


class DataError(AlbumError, ValueError):
    """Arrays or files that cannot be learned from or acted on."""


class NumericalError(AlbumError, ArithmeticError):
    """NaN or infinity where there must be a number."""


class EnvError(AlbumError, RuntimeError):
    """An environment that fails, or whose spaces are not those of the data."""


class RunError(AlbumError, RuntimeError):
    """A run directory or a checkpoint that cannot be used."""


class FileError(AlbumError, OSError):
    """A file that cannot be read or written."""


class Unsupported(AlbumError, NotImplementedError):
    """Something that this agent does not have, such as a state value."""


class NotFitted(AlbumError, AttributeError):
    """An agent that has not been trained yet."""


class StoppedWarning(UserWarning):
    """Ctrl-C ended training before its last step; the agent is what it was by then."""
