"""What the adapter of gymnasium's environments asks of whoever runs it (see crates/album-envs)."""

from ._errors import EnvError


class Hopeless(EnvError):
    """What the environment did would go wrong again."""


def guarded(what, function, *arguments, **named):
    """Runs code of a user."""
    try:
        return function(*arguments, **named)
    except Hopeless:
        raise
    except Exception as error:
        raise Hopeless(f"{what}: {type(error).__name__}: {error}") from error


def load_function(name):
    raise Hopeless(f"{name}: pass the environment itself")
