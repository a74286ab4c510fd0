"""The registry: lazy, and clear about adapters that are missing, broken or claimed twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from arecall import registry
from arecall.adapter import AdapterSpec
from arecall.errors import MissingExtra, UsageError
from arecall.record import AdapterVersion

SPEC = "from arecall.adapter import AdapterSpec\nADAPTER = AdapterSpec({!r}, 'a test', dict, {{}})\n"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution with one adapter on the path, as an installer would."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(distribution: str, entry: str, module: str = "", source: str = "") -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[arecall.adapters]\n{entry}\n")
        if module:
            (tmp_path / f"{module}.py").write_text(source)

    return put


def spec(*needs: str, extra: str | None = None) -> AdapterSpec:
    def connect(options: object) -> None:
        raise NotImplementedError

    return AdapterSpec("mine", "a test", connect, {}, extra=extra, needs=needs)  # type: ignore[arg-type]


def test_first_party_adapters_are_found() -> None:
    assert {"casbin", "memory", "table"} <= set(registry.names())


def test_names_are_sorted() -> None:
    assert list(registry.names()) == sorted(registry.names())


def test_an_installed_adapter_is_found_loaded_and_traced(install: Install) -> None:
    install("their-adapter", "theirs = their_module:ADAPTER", "their_module", SPEC.format("theirs"))
    assert "theirs" in registry.names()
    assert registry.load("theirs").name == "theirs"
    assert registry.origin("theirs") == AdapterVersion(name="theirs", distribution="their-adapter", version="1.5")


def test_first_party_adapters_come_from_this_distribution() -> None:
    assert registry.origin("memory").distribution == "arecall"


def test_nothing_is_imported_until_it_is_asked_for() -> None:
    program = (
        "import sys; from arecall import registry; registry.names(); registry.origin('memory');"
        "assert not [m for m in sys.modules if m.startswith('arecall_adapters')], sys.modules;"
        "registry.load('memory');"
        "loaded = {m for m in sys.modules if m.startswith('arecall_adapters.')};"
        "assert loaded == {'arecall_adapters.memory'}, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", ["casbin", "memory", "table"])
def test_loading_a_spec_loads_no_client(name: str) -> None:
    program = (
        "import sys; from arecall import registry; spec = registry.load(sys.argv[1]);"
        "assert not set(spec.needs) & set(sys.modules), spec.needs"
    )
    subprocess.run([sys.executable, "-c", program, name], check=True)


@pytest.mark.parametrize("ask", [registry.load, registry.origin])
def test_an_unknown_name_is_an_error_with_near_and_installed_names(ask: Callable[[str], object]) -> None:
    with pytest.raises(UsageError, match=r"'MEMRY' \(did you mean 'memory'\?\)\n  installed: .*casbin.*table"):
        ask("MEMRY")


def test_an_unknown_name_that_is_near_to_none_gets_no_guess() -> None:
    with pytest.raises(UsageError, match=r"^no adapter is called 'zzzz'\n  installed: "):
        registry.load("zzzz")


def test_a_name_is_not_folded() -> None:
    with pytest.raises(UsageError, match="did you mean 'memory'"):
        registry.load("Memory")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("raise RuntimeError('half installed')", "cannot be imported: RuntimeError: half installed"),
        ("import a_client_that_is_not_there", "cannot be imported: ModuleNotFoundError: .*a_client_that_is_not_there"),
        ("", "cannot be imported: AttributeError"),
        ("ADAPTER = 7", "is a int, not an AdapterSpec"),
        (SPEC.format("another"), "calls itself 'another'"),
    ],
)
def test_a_broken_adapter_is_an_error_that_names_its_distribution(install: Install, source: str, why: str) -> None:
    install("their-adapter", "broken = broken_module:ADAPTER", "broken_module", source)
    sys.modules.pop("broken_module", None)
    with pytest.raises(registry.AdapterError, match=f"their-adapter 1.5 .*{why}"):
        registry.load("broken")


def test_a_broken_adapter_disturbs_no_other(install: Install) -> None:
    install("their-adapter", "broken = no_such_module:ADAPTER")
    assert "broken" in registry.names()
    assert registry.load("memory").name == "memory"


@pytest.mark.parametrize("ask", [registry.load, registry.origin])
def test_a_name_that_two_distributions_offer_is_an_error_that_names_both(
    install: Install, ask: Callable[[str], object]
) -> None:
    install("their-adapter", "memory = their_module:ADAPTER")
    with pytest.raises(UsageError, match=r"'memory' is offered 2 times: arecall .*, their-adapter 1\.5 "):
        ask("memory")
    assert registry.names().count("memory") == 1


def test_missing_modules_are_named_without_importing_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.missing(spec("explosive", "no_such_module", "no_such_package.module", "json.decoder")) == (
        "no_such_module",
        "no_such_package.module",
    )


def test_a_missing_client_is_an_error_that_names_the_extra() -> None:
    with pytest.raises(
        MissingExtra, match=r"'mine' needs the module 'no_such_module'.*\n.*pip install 'arecall\[client\]'"
    ):
        registry.require(spec("json", "no_such_module", extra="client"))


def test_a_missing_client_of_another_distribution_is_an_error_that_names_the_modules() -> None:
    with pytest.raises(UsageError, match="'mine' needs the modules 'no_such_module', 'nor_this', not installed"):
        registry.require(spec("no_such_module", "nor_this"))


def test_nothing_is_required_of_an_adapter_that_has_all_it_needs() -> None:
    registry.require(spec("json", extra="client"))
