"""The OpenFGA adapter: the server's own Check decides what each principal may read.

Importing this package loads no client; `connect` and `empty` do.
"""

from __future__ import annotations

from arecall_adapters.openfga.options import ADAPTER, connect, empty

__all__ = ["ADAPTER", "connect", "empty"]
