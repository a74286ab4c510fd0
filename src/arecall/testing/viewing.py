"""Tests of the roads by which a principal sees documents: what scenarios watch after a change."""

from __future__ import annotations

import pytest

from arecall.adapter import Adapter, Capability
from arecall.errors import ArecallError
from arecall.testing import worlds
from arecall.testing.kit import Kit
from arecall.world import World, authorized

STEP = worlds.REVOCATIONS["grant"]


class Views(Kit):
    """Every view that the adapter opens."""

    @pytest.mark.parametrize("name", ["direct", "groups add up"])
    def test_views_show_what_may_be_read(self, adapter: Adapter, name: str) -> None:
        """A view that shows too little would pass for one from which a revocation has taken something."""
        table = worlds.TRUTH_TABLES[name]
        self.prepare(adapter, table.world)
        for principal in sorted(table.readable):
            if "check" not in adapter.views(principal):
                pytest.fail(f"views({principal!r}) has no check", pytrace=False)
        self._hold(adapter, table.world, "")

    def test_views_show_nothing_that_was_not_asked_about(self, adapter: Adapter) -> None:
        """A road that shows more than the documents in question would be compared with them wrongly."""
        table = worlds.DIRECT
        self.prepare(adapter, table.world)
        for name, view in adapter.views("ann").items():
            if (seen := view(["memo", "none"])) != {"memo"}:
                pytest.fail(f"asked about 'memo' and 'none', the view {name} shows {sorted(seen)}", pytrace=False)

    def test_fresh_views_show_a_change(self, adapter: Adapter) -> None:
        """A view that is opened after a revocation must not remember what was before it."""
        self.need(Capability.APPLY)
        self.prepare(adapter, STEP.world)
        self._hold(adapter, STEP.world, "before")
        self.apply(adapter, STEP)
        self._hold(adapter, STEP.after, f"after {STEP.change}")

    def test_dead_view_is_an_error(self, adapter: Adapter) -> None:
        """A road that fails hides nothing: an empty answer would look like the end of a revocation."""
        self.prepare(adapter, STEP.world)
        views = adapter.views("ann")
        self.kill(adapter)
        for name, view in views.items():
            try:
                seen = view(["memo", "none"])
            except ArecallError:
                continue
            pytest.fail(f"the backend is dead, and the view {name} shows {sorted(seen)!r:.200}", pytrace=False)

    def _hold(self, adapter: Adapter, world: World, when: str) -> None:
        __tracebackhide__ = True
        documents = sorted(world.documents)
        for principal in sorted(world.principals):
            should = authorized(world, principal)
            for name, view in adapter.views(principal).items():
                seen = view(documents)
                if seen != should:
                    pytest.fail(
                        f"the view {name} of {principal!r} shows {sorted(seen)} {when}, and should show {sorted(should)}",
                        pytrace=False,
                    )
