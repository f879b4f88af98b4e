"""Links and anchors of the documents lead somewhere, and what they tell a reader to type exists."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b((?:docs|bench|tests/rig)/[A-Za-z-]+\.md)((?:#[\w-]+)?)")  # as code and messages name a page
PLACES = ("docs", "bench", "tests", "evalboard", "frontend", "runs", "worker", "tools", "deploy")
PAGES = sorted([*ROOT.glob("*.md"), *(path for place in PLACES for path in (ROOT / place).rglob("*.md"))])
KINDS = {".py", ".html", ".js", ".conf", ".toml", ".yaml", ".env", ""}  # of files of code that name pages
FILES = [*ROOT.glob("*"), *(path for place in PLACES for path in (ROOT / place).rglob("*"))]
CODE = sorted(path for path in FILES if path.suffix in KINDS and path.is_file())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    bare = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in re.findall(r"(?m)^#+ (.+)$", text))
    made = (re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in bare)
    return frozenset([*made, *re.findall(r'<a id="([\w-]+)">', text)])


def leads_nowhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    aim = (page.parent / path).resolve() if path else page
    return not aim.exists() or (bool(anchor) and anchor not in anchors(aim))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: Path) -> None:
    links = LINK.findall(FENCE.sub("", page.read_text()))
    assert not [link for link in links if "://" not in link and leads_nowhere(page, link)]


def test_every_page_that_code_names_is_there() -> None:
    texts = ((str(path.relative_to(ROOT)), path.read_text(errors="ignore")) for path in CODE)
    named = {(path, *name) for path, text in texts for name in NAMED.findall(text)}
    assert len(named) > 50
    assert not {each for each in named if leads_nowhere(ROOT / "README.md", each[1] + each[2])}
