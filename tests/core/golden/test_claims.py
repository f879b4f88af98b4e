"""No situation makes two claims that exclude each other, and no sentence is made outside the tables of messages."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalboard.wording.messages import Claim, list_excluded, record_claims, split_bold
from tests.core.golden.corpus import SUBJECTS
from tests.core.golden.readers import Sentence

# Whose sentences all come from the tables of messages.
SETTLED = {
    *("A suite's verdict", "A release", "Cases that changed", "Why two answers parted", "One computation, or two"),
    *("How much is noise", "Runs", "Probes", "Experiments of the lab", "Bisects of the lab"),
}
# Folders of pages with no sentence outside a table, but for what their forms and their answers to an act say.
FEATURES = (
    *("badges", "board", "compare", "find", "forced", "imports", "lab", "probes", "release", "replays", "runs"),
    *("schedules", "suites"),
)
APART = re.compile(r"(.*views|forms)\.py")
NAMES = re.compile(r"\w+: ")  # of suites and sources, before a sentence
SENTENCE = re.compile(r" .*[a-z]\.( [A-Z]|$)")
FRONTEND = Path(__file__).parents[3] / "frontend"


@pytest.fixture(scope="module")
def spoken() -> dict[str, tuple[list[Sentence], list[Claim]]]:
    """The sentences and the claims of each situation."""
    made = {}
    for subject in SETTLED:
        for name, build in SUBJECTS[subject].items():
            with record_claims() as claims:
                made[name] = build(), list(claims)
    return made


def test_no_situation_claims_what_it_excludes(spoken: dict[str, tuple[list[Sentence], list[Claim]]]) -> None:
    excluded = {name: list_excluded({claim.code for claim in claims}) for name, (_, claims) in spoken.items()}
    assert {name: pairs for name, pairs in excluded.items() if pairs} == {}


def test_every_sentence_is_a_claim(spoken: dict[str, tuple[list[Sentence], list[Claim]]]) -> None:
    escaped = []
    for name, (sentences, claims) in spoken.items():
        texts = sorted({split_bold(claim.text)[0] for claim in claims}, key=len, reverse=True)
        for sentence in sentences:
            rest = sentence.text
            for text in texts:
                rest = rest.replace(text, "").replace(f"{text[:1].lower()}{text[1:]}", "")
            if NAMES.sub("", rest).strip():
                escaped.append(f"{name}: {rest}")
    assert escaped == []


@pytest.mark.parametrize("feature", FEATURES)
def test_a_page_has_its_sentences_in_tables(feature: str) -> None:
    modules = [path for path in (FRONTEND / feature).rglob("*.py") if not APART.fullmatch(path.name)]
    assert {path.name: texts for path in modules if (texts := list(_sentences(ast.parse(path.read_text()))))} == {}


def _sentences(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that read as a sentence, apart from those of tables and docstrings."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Call(func=ast.Name(id="Messages")):
            return
        case ast.Constant(value=str(text)):
            pass
        case ast.JoinedStr(values=values):
            text = "".join(part.value if isinstance(part, ast.Constant) else "it" for part in values)
        case _:
            text = ""
    if SENTENCE.search(text):
        yield text
    for inner in ast.iter_child_nodes(node):
        yield from _sentences(inner)
