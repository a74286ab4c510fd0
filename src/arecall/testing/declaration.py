"""Tests of what an adapter says of itself."""

from __future__ import annotations

import re

import msgspec
import pytest
import rfc8785

from arecall.adapter import REQUIRED, Adapter, Capability
from arecall.record import Backend
from arecall.testing.kit import Kit
from arecall.testing.worlds import NO_GRANTS

METHODS = {
    Capability.LIST: "list_authorized",
    Capability.PROVISION: "provision",
    Capability.APPLY: "apply",
    Capability.SEARCH: "search",
    Capability.EXPLAIN: "explain",
}
"""The optional methods of the contract, by the capability that promises them."""


class Declaration(Kit):
    """The spec and the record."""

    def test_required_capabilities_are_supported(self) -> None:
        """What every adapter must do cannot be declared away."""
        lacking = [capability.name for capability in REQUIRED if not self.spec.support(capability).supported]
        if lacking:
            pytest.fail(f"required of every adapter, and not supported: {lacking}", pytrace=False)

    def test_what_is_not_supported_has_a_reason(self) -> None:
        """A user reads the reason where a test or a scenario is skipped."""
        silent = [
            c.name for c, support in self.spec.capabilities.items() if not (support.supported or support.reason.strip())
        ]
        if silent:
            pytest.fail(f"declared unsupported without a reason: {silent}", pytrace=False)

    def test_nested_groups_are_groups(self) -> None:
        """Groups within groups cannot be supported where groups are not."""
        if self.spec.support(Capability.NESTED_GROUPS).supported and not self.spec.support(Capability.GROUPS).supported:
            pytest.fail("NESTED_GROUPS is declared supported, GROUPS is not", pytrace=False)

    @pytest.mark.parametrize("capability", METHODS, ids=METHODS.get)
    def test_declared_and_implemented_methods_are_the_same(self, adapter: Adapter, capability: Capability) -> None:
        """A method without its declaration would be used and never tested."""
        method = METHODS[capability]
        implemented = getattr(type(adapter), method) is not getattr(Adapter, method)
        declared = self.spec.support(capability).supported
        if implemented != declared:
            pytest.fail(
                f"{capability.name} is declared {'' if declared else 'un'}supported, and `{method}` is"
                f" {'' if implemented else 'not '}implemented",
                pytrace=False,
            )

    def test_options_are_well_formed(self) -> None:
        """Options become names on the command line; a secret one must not come with its value."""
        names = [option.name for option in self.spec.options]
        wrong = [
            f"the name {name!r} is taken or malformed"
            for name in names
            if names.count(name) > 1 or not _NAME.match(name)
        ]
        wrong += [f"{option.name} has no help" for option in self.spec.options if not option.help.strip()]
        wrong += [
            f"the secret {option.name} has a default"
            for option in self.spec.options
            if option.secret and option.default
        ]
        taken = self.spec.cleanup.options if self.spec.cleanup is not None else ()
        wrong += [
            f"{option.name} is taken by cleanup, and not among options" for option in taken if option.name not in names
        ]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)

    def test_describes_what_is_asked(self, adapter: Adapter) -> None:
        """The record must have every part, in the form that files have, and be the same while nothing changes."""
        self.prepare(adapter, NO_GRANTS.world)
        backend = adapter.describe()
        unnamed = [part for part in ("kind", "version", "identity") if not getattr(backend, part).strip()]
        if unnamed:
            pytest.fail(f"describe() leaves {unnamed} empty", pytrace=False)
        plain = msgspec.to_builtins(backend)
        msgspec.convert(plain, Backend)
        rfc8785.dumps(plain)
        if adapter.describe() != backend:
            pytest.fail(
                "describe() differs from call to call although nothing changed: it would look like drift", pytrace=False
            )

    def test_may_be_closed_twice(self, adapter: Adapter) -> None:
        """An error while closing would hide the error before it."""
        adapter.close()
        adapter.close()


_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
