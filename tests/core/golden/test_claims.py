"""No situation makes two claims that exclude each other, and no sentence is made outside the tables of messages."""

import ast
import re
from pathlib import Path

import pytest

from evalboard.wording.messages import Claim, list_excluded, record_claims, split_bold
from tests.core.golden.corpus import SUBJECTS
from tests.core.golden.readers import Sentence

# Whose sentences all come from the tables of messages.
SETTLED = {
    *("A suite's verdict", "A release", "Cases that changed", "Why two answers parted", "One computation, or two"),
    *("How much is noise", "Runs", "Probes"),
}
# Modules of pages with no sentence outside a table.
WORDS = ("compare/words", "release/words", "runs/words")
NAMES = re.compile(r"[a-z]+: ")  # of suites, before a sentence
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


@pytest.mark.parametrize("name", WORDS)
def test_a_page_has_its_sentences_in_tables(name: str) -> None:
    tree = ast.parse((FRONTEND / f"{name}.py").read_text())
    tables = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Messages"]
    docstrings = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    apart = {id(inner) for node in (*tables, *docstrings) for inner in ast.walk(node)}
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [node.value for node in texts if id(node) not in apart and SENTENCE.search(node.value)] == []
