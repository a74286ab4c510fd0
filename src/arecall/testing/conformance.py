"""The whole kit in one class."""

from __future__ import annotations

from arecall.testing.changing import Changes
from arecall.testing.declaration import Declaration
from arecall.testing.failing import Failures
from arecall.testing.identifiers import Identifiers
from arecall.testing.reading import Completeness, Decisions
from arecall.testing.viewing import Views


class AdapterConformance(Declaration, Decisions, Completeness, Changes, Views, Failures, Identifiers):
    """Subclass it as `Test...`, set `spec`, override the fixture `empty` and the hook `kill`: pytest does the rest.

    A test of an optional capability is skipped with the adapter's own reason where the capability is not supported;
    a required one never is.
    """
