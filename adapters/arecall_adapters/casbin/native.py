"""A model and a policy, and changes of its lines, as a scenario gives them in place of a neutral world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arecall.adapter import Native
from arecall.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from arecall_adapters.casbin.adapter import CasbinAdapter

SETTINGS = ("request", "action", "context")


def load(native: Native) -> CasbinAdapter:
    """Open the files `model` and `policy`.

    Raises:
        UsageError: a file is missing, or a setting that there is not.
    """
    from arecall_adapters.casbin.options import connect

    for name in ("model", "policy"):
        if name not in native.files:
            raise UsageError(f"a native world of casbin names the files `model` and `policy`; {name} is missing")
    if unknown := sorted(set(native.settings) - set(SETTINGS)):
        raise UsageError(f"casbin has no setting {unknown[0]!r}; there are {', '.join(SETTINGS)}")
    settings = {name: str(value) for name, value in native.settings.items()}
    return connect({**settings, "model": native.files["model"], "policy": native.files["policy"]})


def apply(enforcer: Any, change: Mapping[str, Any]) -> None:
    """Remove and add lines of a policy, each a list that begins with its type (`p`, `g2`).

    Raises:
        UsageError: the change has another form.
        PolicyError: casbin did not take a line.
    """
    if unknown := sorted(set(change) - {"add", "remove"}):
        raise UsageError(f"a native change of casbin has no {unknown[0]!r}; it has add and remove, lists of lines")
    for which in ("remove", "add"):
        for line in change.get(which, []):
            if not isinstance(line, list) or len(line) < 2 or not all(isinstance(field, str) for field in line):
                raise UsageError(f"{line!r} is no line of a policy, as in [p, ann, memo, read]")
            # Plain strings: casbin keeps what it is given.
            kind, *fields = map(str, line)
            section = "named_grouping_policy" if kind.startswith("g") else "named_policy"
            if not getattr(enforcer, f"{which}_{section}")(kind, *fields):
                raise PolicyError(f"casbin did not {which} the line {', '.join(map(str, line))}", "correct the change")
