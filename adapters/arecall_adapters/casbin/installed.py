"""Which casbin is installed: `pycasbin`, or the older `casbin`; both are imported as `casbin`."""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.metadata
from pathlib import Path
from typing import Any

from arecall.errors import MissingExtra


def load() -> Any:
    """Import casbin and return the module.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import casbin
    except ModuleNotFoundError as error:
        if error.name != "casbin":
            raise
        raise MissingExtra("casbin", "casbin", "casbin") from error
    return casbin


@functools.cache
def version() -> str:
    """Name the distribution and version that decides, as in `"pycasbin 2.8.0"`.

    `pycasbin` and `casbin` install the same import package, the later one over the earlier (an add-on may pull the
    other in). Where both are installed, the one whose recorded digests fit the files decides; where that is not
    exactly one of them, all are named.
    """
    package = Path(load().__file__).parent
    names = sorted(set(importlib.metadata.packages_distributions().get("casbin", ())))
    installed = [importlib.metadata.distribution(name) for name in names]
    fitting = [found for found in installed if _is_on_disk(found, package)] or installed
    if len(fitting) > 1:
        return " or ".join(f"{found.name} {found.version}" for found in fitting) + ", installed over each other"
    return " ".join(f"{found.name} {found.version}" for found in fitting) or "unknown"


def _is_on_disk(distribution: importlib.metadata.Distribution, package: Path) -> bool:
    for file in distribution.files or ():
        if file.parts[0] == package.name and file.suffix == ".py" and file.hash is not None:
            on_disk = package.parent / file
            if not on_disk.is_file():
                return False
            digest = hashlib.new(file.hash.mode, on_disk.read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                return False
    return True
