"""What the package of an engine offers. Nothing here loads a client, nor what asks one, before it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arecall.adapter import Empty
    from arecall_adapters.dls.adapter import DlsAdapter
    from arecall_adapters.dls.engine import Engine


@dataclass(frozen=True)
class Kind:
    """How a container of an engine is started.

    Attributes:
        name: of the engine, and so of its image.
        user: the administrator.
        password_variable: the environment variable that sets the administrator's password.
        environment: what else is set; a name with a dot is a node setting.
        ready: asks an engine whether it is up; raises, or answers with False, until it is.
        account: makes an administrator with this password to ask as in place of `user`, and returns its name.
    """

    name: str
    user: str
    password_variable: str
    environment: Mapping[str, str]
    ready: Callable[[Engine], bool]
    account: Callable[[Engine, str], str] | None = None


@dataclass(frozen=True)
class Product:
    """An engine, as it is reached and started.

    Attributes:
        engine: makes one of an `Access`, and of settings that it has beside.
        kind: how a container of it is started.
    """

    engine: Callable[..., Engine]
    kind: Kind

    def connect(self, options: Mapping[str, Any], **settings: Any) -> DlsAdapter:
        """Open an access path of a cluster; `settings` are the engine's own.

        Raises:
            UsageError: options are missing, or contradict each other.
            InputError: the file of credentials or of chunks is malformed.
            BackendError: the cluster cannot be asked.
        """
        from arecall_adapters.dls.options import access, open_adapter

        engine = self.engine(access(options), **settings)
        try:
            return open_adapter(engine, options)
        except BaseException:
            engine.wire.close()
            raise

    def empty(self, url: str, user: str, password: str) -> DlsAdapter:
        """Make an index of its own on the cluster at `url`, to provision a world in; closing the adapter removes it.

        Raises:
            BackendError: the cluster cannot be asked, or the account may make no index.
        """
        from arecall_adapters.dls.throwaway import Server, open_empty

        return open_empty(self.engine, Server(url, user, password))

    def sandbox(self, url: str | None) -> AbstractContextManager[Empty]:
        """Open indices of their own on the cluster at `url`, or on a throw-away one; see `throwaway.sandbox`."""
        from arecall_adapters.dls import throwaway

        return throwaway.sandbox(self.kind, self.engine, url)

    def cleanup(self, options: Mapping[str, Any], at_least_seconds: float, dry_run: bool = False) -> Sequence[str]:
        """Remove temporary principals of that age, and name them; in a dry run only name them.

        Raises:
            UsageError: options are missing, or contradict each other.
            BackendError: the cluster cannot be asked, or does not let the account look for them or remove them.
        """
        from arecall_adapters.dls.options import access, clean_up

        engine = self.engine(access(options))
        try:
            return clean_up(engine, at_least_seconds, dry_run=dry_run)
        finally:
            engine.wire.close()
