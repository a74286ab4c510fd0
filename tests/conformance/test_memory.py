"""The in-memory adapter against the kit."""

from __future__ import annotations

import pytest

from arecall.adapter import Adapter, Empty
from arecall.testing import AdapterConformance
from arecall_adapters import memory


class TestMemory(AdapterConformance):
    spec = memory.ADAPTER

    @pytest.fixture
    def empty(self) -> Empty:
        return memory.empty

    def kill(self, adapter: Adapter) -> None:
        adapter.close()
