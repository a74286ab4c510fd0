"""The conformance kit: an adapter of anyone's proves itself with ten lines.

    from arecall.testing import AdapterConformance

    class TestMine(AdapterConformance):
        spec = ADAPTER

        @pytest.fixture
        def empty(self):
            return open_mine_over_an_empty_backend

        def kill(self, adapter):
            adapter.server.kill()

This package is the only one here, with the pytest plugin, that imports pytest.
"""

from arecall.adapter import needs
from arecall.testing.conformance import AdapterConformance
from arecall.testing.live import unavailable
from arecall.testing.roads import Road
from arecall.testing.worlds import TruthTable

__all__ = ["AdapterConformance", "Road", "TruthTable", "needs", "unavailable"]
