"""The one family of errors: every message names the offender, its value and the valid choices, in one line."""


class TwolinkError(Exception):
    """Base of every error this package raises on purpose."""


class UrdfError(TwolinkError, ValueError):
    """A URDF that cannot be read as an arm."""


class ModelError(TwolinkError, ValueError):
    """An arm that is not physical, or a question the arm cannot answer (no such joint, no single tip, ...)."""


class InputError(TwolinkError, ValueError):
    """An array, a message or a parameter of the wrong shape, type or range."""


class SimulationError(TwolinkError, RuntimeError):
    """A simulation that cannot go on (it would diverge, a constraint cannot hold, ...)."""


class TwolinkWarning(UserWarning):
    """Something was accepted that the user should know about; nothing was repaired in silence."""


def choices(names, limit=12):
    """The valid choices as text for an error message: ``'a, b, c'``, shortened past `limit` names."""
    names = [str(name) for name in names]
    shown = ", ".join(names[:limit]) or "(none)"
    return shown if len(names) <= limit else f"{shown}, ... ({len(names)} in all)"
