"""`arecall explain ADAPTER`."""

from __future__ import annotations

import json
from typing import Any

import click

from arecall.adapter import AdapterSpec, Capability
from arecall.cli.adapter_commands import AdapterGroup, settings
from arecall.cli.options import format_option


def _command(spec: AdapterSpec) -> click.Command | None:
    if not spec.support(Capability.EXPLAIN).supported:
        return None

    @click.command(
        spec.name, help=f"{spec.summary}\n\nSay what decides whether PRINCIPAL may read DOCUMENT, or that nothing does."
    )
    @click.argument("principal_id", metavar="PRINCIPAL")
    @click.argument("document_id", metavar="DOCUMENT")
    @format_option("text", "json")
    def explain_pair(**values: Any) -> None:
        import msgspec

        from arecall import registry

        registry.require(spec)
        with spec.connect(settings(spec.options, values)) as adapter:
            found = adapter.explain(values["principal_id"], values["document_id"])
        if values["form"] == "json":
            click.echo(json.dumps(msgspec.to_builtins(found, enc_hook=str), ensure_ascii=False, indent=1))
        else:
            click.echo(found.render())
        if not found.outcome.decision.plain:
            raise click.exceptions.Exit(3)

    return explain_pair


@click.group(
    cls=AdapterGroup,
    make=_command,
    epilog="""\b
Example:
  arecall explain casbin --model rbac.conf --policy policy.csv jude dunlin-rig-plan""",
)
def explain() -> None:
    """Say why a principal may read a document, or may not.

    Ends with 3 where there is no plain decision. Only adapters that can tell have a command here.
    """
