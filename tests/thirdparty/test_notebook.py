import pytest
from arecall_notebook import ADAPTER, empty

from arecall.testing import AdapterConformance


class TestNotebook(AdapterConformance):
    spec = ADAPTER

    @pytest.fixture
    def empty(self):
        return empty

    def kill(self, adapter):
        adapter.lose()
