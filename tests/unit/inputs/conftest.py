from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arecall.errors import InputError

Write = Callable[[str, str | bytes], Path]
Refused = Callable[..., InputError]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below a fresh folder, text as UTF-8 and with its line ends as they are, and return its path."""

    def written(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


@pytest.fixture
def refused() -> Refused:
    """Call a reader that must refuse its input, and return the error."""

    def error(reader: Callable[..., Any], *args: object, **options: object) -> InputError:
        with pytest.raises(InputError) as caught:
            reader(*args, **options)
        return caught.value

    return error
