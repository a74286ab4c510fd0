"""`arecall adapters`."""

from __future__ import annotations

import json
from typing import Any

import click

from arecall.cli.options import format_option


@click.command()
@format_option("table", "json")
def adapters(form: str) -> None:
    """List the adapters that are installed, what each can do, and which extra brings what it lacks."""
    from arecall import registry
    from arecall.adapter import Capability
    from arecall.errors import ArecallError

    listed: list[dict[str, Any]] = []
    for name in registry.names():
        try:
            spec = registry.load(name)
        except ArecallError as error:
            listed.append({"name": name, "status": "broken", "problem": str(error)})
            continue
        origin = registry.origin(name)
        missing = registry.missing(spec)
        listed.append(
            {
                "name": name,
                "status": f"needs {', '.join(missing)}" if missing else "ready",
                "install": f"pip install 'arecall[{spec.extra}]'" if missing and spec.extra else "",
                "summary": spec.summary,
                "distribution": f"{origin.distribution} {origin.version}",
                "capabilities": {
                    c.name.lower(): {"supported": spec.support(c).supported, "reason": spec.support(c).reason}
                    for c in Capability
                },
            }
        )
    if form == "json":
        click.echo(json.dumps(listed, ensure_ascii=False, indent=1))
        return
    for one in listed:
        click.echo(f"{one['name']}  [{one['status']}]  {one.get('distribution', '')}")
        click.echo(f"  {one.get('summary', one.get('problem'))}")
        if one.get("install"):
            click.echo(f"  to use it: {one['install']}")
        if capabilities := one.get("capabilities"):
            click.echo("  can: " + ", ".join(n for n, s in capabilities.items() if s["supported"]))
            for name, support in capabilities.items():
                if not support["supported"]:
                    click.echo(f"  cannot {name}: {support['reason']}")
        click.echo()
