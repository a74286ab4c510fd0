"""Which roles are read for an access path: one too many is a longer record, one too few is a change that nobody sees."""

from __future__ import annotations

import pytest

from arecall_adapters.dls.roles import matches


@pytest.mark.parametrize(
    ("pattern", "names", "expected"),
    [
        ("docs", ["docs"], True),
        ("docs", ["docs-2", "other"], False),
        ("docs-?", ["docs-2"], True),
        ("*", ["docs"], True),
        ("d.cs", ["docs"], False),
        ("docs-2026", ["docs-*"], True),
        ("/docs-[0-9]+/", ["docs-2"], True),
        ("/docs-[0-9]+/", ["docs-archive"], True),
        ("/docs-[0-9]+/", ["other"], False),
        ("/docs-[0-9]+/", ["oth*"], True),
        ("/docs*/", ["doc"], True),
        ("/docs?/", ["doc"], True),
        ("/docs{0,1}/", ["doc"], True),
        ("/docs|other/", ["other"], True),
        ("/(?i)DOCS/", ["docs"], True),
        ("/.*/", ["docs"], True),
        ("/", ["docs"], True),
        ("/docs/", [], False),
    ],
)
def test_a_pattern_is_left_out_only_where_it_can_match_no_name_of_the_path(
    pattern: str, names: list[str], expected: bool
) -> None:
    assert matches(pattern, names) is expected
