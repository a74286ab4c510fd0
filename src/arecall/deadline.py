"""A limit on how long a call may take that cannot be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_T = TypeVar("_T")


class LateError(TimeoutError):
    """A call has not returned in time; one that raises a `TimeoutError` of its own has."""


def within(seconds: float, call: Callable[[], _T]) -> _T:
    """Call `call`, and wait for it that long.

    Raises:
        LateError: it has not returned; it is left alone, in a thread that the process does not wait for.
    """
    result: Future[_T] = Future()

    def called() -> None:
        try:
            result.set_result(call())
        except BaseException as error:  # noqa: BLE001 -- raised where it is waited for
            result.set_exception(error)

    threading.Thread(target=called, daemon=True).start()
    if not wait([result], seconds).done:
        raise LateError(f"no answer within {seconds:g} s")
    return result.result()
