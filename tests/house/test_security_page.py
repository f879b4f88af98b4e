"""SECURITY.md lists every attack that is tested, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_attack_is_listed_and_every_listed_one_is_tested() -> None:
    page = (ROOT / "SECURITY.md").read_text()
    listed = set(re.findall(r"`(test_\w+\.py)` \|$", page, re.M))
    assert listed == {path.name for path in (ROOT / "tests" / "attacks").glob("test_*.py")}
