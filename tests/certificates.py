"""Certificates of authorities that nobody trusts unless told to."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Authority:
    """A certificate authority, and the file (PEM) to trust it by."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self.file = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def serving(self, host: str) -> ssl.SSLContext:
        """What a server needs that is called `host`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(host).configure_cert(context)
        return context
