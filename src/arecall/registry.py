"""The registry: finds adapters by entry point, and imports none until it is asked for by name.

A first-party adapter enters by the same group as anyone's. Trouble with one adapter (a broken module, a name that two
distributions claim) is an error only for who asks for that one.
"""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

from arecall.adapter import AdapterSpec
from arecall.errors import ArecallError, MissingExtra, UsageError
from arecall.record import AdapterVersion

GROUP = "arecall.adapters"
"""The entry point group; each entry point names an `AdapterSpec`, by the adapter's own name."""


class AdapterError(ArecallError):
    """An installed adapter that cannot be used as it is; the message names the distribution that brought it."""


def names() -> tuple[str, ...]:
    """Return the names of all installed adapters, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def load(name: str) -> AdapterSpec:
    """Import the adapter called `name` and return its spec.

    Raises:
        UsageError: no adapter has this name, or two distributions offer it.
        AdapterError: the entry point cannot be imported, or is not the `AdapterSpec` of that name.
    """
    point = _find(name)
    whose = f"the adapter {name!r} of {_distribution(point)} ({point.value})"
    try:
        spec = point.load()
    except Exception as error:
        raise AdapterError(
            f"{whose} cannot be imported: {type(error).__name__}: {error}"
            f"\n  fix: upgrade or uninstall {_distribution(point)}"
        ) from error
    if not isinstance(spec, AdapterSpec):
        raise AdapterError(f"{whose} is a {type(spec).__name__}, not an AdapterSpec")
    if spec.name != name:
        raise AdapterError(f"{whose} calls itself {spec.name!r}; a record would name an adapter that cannot be found")
    return spec


def origin(name: str) -> AdapterVersion:
    """Say which distribution, of which version, brings the adapter called `name`; nothing is imported.

    Raises:
        UsageError: no adapter has this name, or two distributions offer it.
    """
    distribution = _find(name).dist
    if distribution is None:
        return AdapterVersion(name=name)
    return AdapterVersion(name=name, distribution=distribution.name, version=distribution.version)


def missing(spec: AdapterSpec) -> tuple[str, ...]:
    """Return the modules of `spec.needs` that are not importable; they are looked for, not imported.

    Only the parents of a dotted name are imported, as Python cannot look into a package otherwise.
    """
    return tuple(module for module in spec.needs if not _importable(module))


def require(spec: AdapterSpec) -> None:
    """Make sure that everything `spec` needs can be imported.

    Raises:
        MissingExtra: something is missing, and an extra of this distribution brings it.
        UsageError: something is missing, and how to install it is another distribution's business.
    """
    absent = missing(spec)
    if not absent:
        return
    if spec.extra is not None:
        raise MissingExtra(spec.name, spec.extra, absent[0])
    raise UsageError(
        f"the adapter {spec.name!r} needs the {_plural('module', absent)}, not installed"
        f"\n  fix: install what the adapter's own documentation asks for"
    )


def _find(name: str) -> EntryPoint:
    points = tuple(entry_points(group=GROUP, name=name))
    if not points:
        known = names()
        # Compared in lower case, so that CASBIN finds casbin; the name itself is never folded.
        lowered = {other.lower(): other for other in known}
        near = [lowered[match] for match in difflib.get_close_matches(name.lower(), lowered)]
        hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        raise UsageError(f"no adapter is called {name!r}{hint}\n  installed: {', '.join(known) or 'none'}")
    if len(points) > 1:
        offers = ", ".join(sorted(f"{_distribution(point)} ({point.value})" for point in points))
        raise UsageError(
            f"the adapter {name!r} is offered {len(points)} times: {offers}"
            f"\n  fix: uninstall all but one, so that it is certain who decides"
        )
    return points[0]


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:  # a parent of a dotted name is missing, or cannot be imported
        return False


def _plural(noun: str, items: Sequence[str]) -> str:
    return f"{noun}{'s' if len(items) > 1 else ''} {', '.join(map(repr, items))}"
