"""What every part of the kit stands on: the hooks that an adapter's author fills in, and how a world gets in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar

import pytest

from arecall.adapter import Adapter, AdapterSpec, Capability, Empty, needs
from arecall.errors import (
    ArecallError,
    BackendTimeout,
    BackendUnavailable,
    Disagreement,
    DriftError,
    IncompleteAnswer,
)
from arecall.testing.roads import Road, hold
from arecall.testing.worlds import Step, TruthTable
from arecall.world import World, authorized

NO_REFUSAL = (BackendUnavailable, BackendTimeout, IncompleteAnswer, Disagreement, DriftError)
"""Errors of a backend that is gone, slow, or at odds with itself: none of them says no to what was asked."""


def is_refusal(error: ArecallError) -> bool:
    """Whether `error` refuses what was asked."""
    return not isinstance(error, NO_REFUSAL)


class Kit:
    """The hooks, and the fixtures that are built on them.

    Attributes:
        spec: the adapter's spec; its capabilities say what is tested.
        cannot_be_killed: why `kill` is not possible (an engine within this process); shown where it is skipped.
        only_one_backend: why there cannot be two empty backends at once; then override the fixture `adapter`.
        many: how many documents the largest world has; raise it past whatever cap the backend is known for.
    """

    spec: ClassVar[AdapterSpec]
    cannot_be_killed: ClassVar[str] = ""
    only_one_backend: ClassVar[str] = ""
    many: ClassVar[int] = 2_500

    # -- hooks --------------------------------------------------------------------------------------------------------

    @pytest.fixture
    def empty(self, request: pytest.FixtureRequest) -> Empty:
        """Override: return a callable that opens an adapter over an empty backend."""
        # Without `adapter` in it, the test is one of the few that need two backends; all others must have theirs.
        if self.only_one_backend and "adapter" not in request.fixturenames:
            pytest.skip(self.only_one_backend)
        pytest.fail(
            f"override the fixture `empty` in {type(self).__name__}"
            " (or `adapter`, and say in `only_one_backend` why there cannot be two)",
            pytrace=False,
        )

    @pytest.fixture
    def adapter(self, empty: Empty) -> Iterator[Adapter]:
        """Open an adapter over an empty backend, for one test."""
        with empty() as adapter:
            yield adapter

    def provision(self, adapter: Adapter, world: World) -> None:
        """Put `world` into the empty backend; override it where the adapter cannot do that itself."""
        support = self.spec.support(Capability.PROVISION)
        if not support.supported:
            pytest.fail(
                f"override `provision` in {type(self).__name__}: the required tests need a world in the backend, and"
                f" the adapter puts none there itself ({support.reason})",
                pytrace=False,
            )
        adapter.provision(world)

    def stop(self, adapter: Adapter) -> None:
        """End the adapter and, where that is possible, its backend: a snapshot must need neither."""
        adapter.close()

    def kill(self, adapter: Adapter) -> None:
        """Override: make the backend unreachable for the open `adapter`."""
        del adapter
        if self.cannot_be_killed:
            pytest.skip(self.cannot_be_killed)
        pytest.fail(
            f"override `kill` in {type(self).__name__}, or say in `cannot_be_killed` why the backend cannot go away",
            pytrace=False,
        )

    # -- for the tests ------------------------------------------------------------------------------------------------

    @pytest.fixture(params=list(Road), ids=lambda road: road.value)
    def road(self, request: pytest.FixtureRequest) -> Road:
        """Each road in turn; the listing only where it is supported."""
        road: Road = request.param
        if road is Road.LIST:
            self.need(Capability.LIST)
        return road

    @property
    def roads(self) -> Collection[Road]:
        """All roads that the adapter has."""
        return [road for road in Road if road is not Road.LIST or self.spec.support(Capability.LIST).supported]

    def need(self, capability: Capability) -> None:
        """Skip the test, with the adapter's reason, where it does not support `capability`."""
        __tracebackhide__ = True
        support = self.spec.support(capability)
        if not support.supported:
            pytest.skip(f"{capability.name}: {support.reason}")

    def prepare(self, adapter: Adapter, world: World) -> None:
        """Put `world` into the backend; skip the test where the adapter says that it cannot hold such a world.

        A world that it cannot hold must be refused: one that is built without its exclusions lets people in.
        """
        __tracebackhide__ = True
        lacking = self._lacking(world)
        if not lacking:
            self.provision(adapter, world)
            return
        if self.spec.support(Capability.PROVISION).supported:
            self._refuses(lambda: adapter.provision(world), "provision took a world with", lacking)
        self.need(lacking[0])

    def apply(self, adapter: Adapter, step: Step) -> None:
        """Apply the change of `step`; skip the test where the adapter says that it cannot hold the world after it."""
        __tracebackhide__ = True
        lacking = self._lacking(step.after)
        if not lacking:
            adapter.apply(step.change)
            return
        self._refuses(lambda: adapter.apply(step.change), "apply took a change to", lacking)
        self.need(lacking[0])

    def decides(self, adapter: Adapter, road: Road, table: TruthTable) -> None:
        """Put the table's world into the backend and hold the answers of `road` against the table."""
        __tracebackhide__ = True
        self.prepare(adapter, table.world)
        hold(road.ask(adapter, sorted(table.readable), sorted(table.world.documents)), table.readable, road.value)

    def decides_or_refuses(self, adapter: Adapter, road: Road, table: TruthTable) -> None:
        """As `decides`; but a typed error, in provisioning or in reading, is as good as the right answer."""
        __tracebackhide__ = True
        try:
            self.decides(adapter, road, table)
        except ArecallError as error:
            if not is_refusal(error):
                raise

    def agrees(self, adapter: Adapter, road: Road, world: World, when: str) -> None:
        """Hold the answers of `road` about everything in `world` against the oracle."""
        __tracebackhide__ = True
        readable = {principal: authorized(world, principal) for principal in world.principals}
        hold(road.ask(adapter, sorted(readable), sorted(world.documents)), readable, f"{road.value} {when}")

    def _lacking(self, world: World) -> list[Capability]:
        wanted = needs(world)
        return [
            capability
            for capability in Capability
            if capability in wanted and not self.spec.support(capability).supported
        ]

    def _refuses(self, call: Callable[[], object], what: str, lacking: list[Capability]) -> None:
        __tracebackhide__ = True
        try:
            call()
        except ArecallError as error:
            if is_refusal(error):
                return
            raise
        names = ", ".join(capability.name for capability in lacking)
        pytest.fail(
            f"{what} {names}, which the adapter does not support: it must be refused with a typed error", pytrace=False
        )
