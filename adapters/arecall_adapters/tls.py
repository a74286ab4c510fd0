"""What every adapter of a server demands of the certificate authorities that a user names."""

from __future__ import annotations

import ssl

from arecall.errors import UsageError


def demand_authorities(ca_file: str, url: str) -> None:
    """Refuse certificate authorities that would prove nothing; the clients look into the file when they first connect.

    Raises:
        UsageError: the file holds none, or the URL is none of TLS.
    """
    if not url.startswith("https:"):
        raise UsageError(f"--ca-file is for https://, and nothing proves who answers at {url}")
    try:
        ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise UsageError(f"the certificates {ca_file} cannot be loaded: {error}") from None
