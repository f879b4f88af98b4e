"""SECURITY.md lists every attack that is tested, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_attack_is_listed_and_every_listed_one_is_tested() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    listed = set(re.findall(r"`(test_\w+\.py)` \|$", page, re.M))
    assert listed == {path.name for path in (ROOT / "tests" / "attacks").glob("test_*.py")}


def test_every_chapter_names_tests_that_there_are() -> None:
    page = (ROOT / "SECURITY.md").read_text().partition("## OWASP")[2]
    chapters = re.findall(r"^\| (V\d+) .*\|$", page, re.M)
    assert len(chapters) == len(set(chapters)) == 15
    named = re.findall(r"`(tests/[\w/]+\.py)`", page)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
