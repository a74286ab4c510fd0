"""One kit class a mutant; `test_mutants.py` runs chosen tests of them in a pytest of its own, where they may fail."""

from __future__ import annotations

import pytest

from arecall.adapter import Adapter, Empty
from arecall.testing import AdapterConformance
from conformance.mutants import MUTANTS, Mutant


class OfAMutant(AdapterConformance):
    mutant: Mutant

    @pytest.fixture
    def empty(self) -> Empty:
        return self.mutant.adapter

    def kill(self, adapter: Adapter) -> None:
        adapter.close()


for name, mutant in MUTANTS.items():
    globals()[f"Test{name}"] = type(f"Test{name}", (OfAMutant,), {"mutant": mutant, "spec": mutant.spec})
