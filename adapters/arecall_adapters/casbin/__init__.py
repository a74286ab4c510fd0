"""The Casbin adapter: `enforce()` of pycasbin (or of the older `casbin`) decides what each principal may read.

Importing this package loads no casbin; `connect`, `from_enforcer` and `empty` do.
"""

from __future__ import annotations

from arecall_adapters.casbin.adapter import CasbinAdapter
from arecall_adapters.casbin.explanation import Chain, Explanation
from arecall_adapters.casbin.options import ADAPTER, connect, empty, from_enforcer

__all__ = ["ADAPTER", "CasbinAdapter", "Chain", "Explanation", "connect", "empty", "from_enforcer"]
