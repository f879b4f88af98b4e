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
# With no sentence outside a table: every module of pages (apart from commands) and these.
ROOT = Path(__file__).parents[3]
REPORTS = ("bisect", "bisect_report", "lab", "lab_report")
NAMES = re.compile(r"\w+: ")  # of suites and sources, before a sentence
SENTENCE = re.compile(r" .*[a-z]\.( [A-Z]|$)")


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


def test_no_page_shows_markdown() -> None:
    """Pages write a text as it is. The reports of the lab are Markdown files."""
    written = [path for path in (ROOT / "evalboard" / "wording").rglob("*.py") if path.stem not in REPORTS]
    modules = [*written, *(ROOT / "frontend").rglob("*.py")]
    with_ticks = {path: texts for path in modules if (texts := list(_ticked(ast.parse(path.read_text()))))}
    refusals = [(path, ast.walk(ast.parse(path.read_text()))) for path in (ROOT / "runs").rglob("*.py")]
    with_ticks |= {
        path: texts
        for path, nodes in refusals
        if (texts := [text for node in nodes if isinstance(node, ast.Raise) for text in _ticked(node)])
    }
    assert {str(path.relative_to(ROOT)): texts for path, texts in with_ticks.items()} == {}


def _ticked(node: ast.AST) -> Iterator[str]:
    """Yield the texts with a backtick, apart from docstrings, help texts and the conditions in the docs."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.keyword(arg="help_text"):
            return
        case ast.AnnAssign(target=ast.Name(id="SEVERITIES")):
            return
        case ast.Constant(value=str(text)) if "`" in text:
            yield text
    for inner in ast.iter_child_nodes(node):
        yield from _ticked(inner)


@pytest.mark.nightly
def test_a_page_has_its_sentences_in_tables() -> None:
    modules = [path for path in (ROOT / "frontend").rglob("*.py") if "management" not in path.parts]
    modules += [ROOT / "evalboard" / "wording" / f"{name}.py" for name in REPORTS]
    outside = {path: texts for path in modules if (texts := list(_sentences(ast.parse(path.read_text()))))}
    assert {str(path.relative_to(ROOT)): texts for path, texts in outside.items()} == {}


def _sentences(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that read as a sentence, apart from those of tables and docstrings.

    What a form asks is left out too, and what an act is answered: a message, a refusal.
    """
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Call(func=ast.Name(id="Messages")):
            return
        case ast.keyword(arg="help_text") | ast.Raise() | ast.Call(func=ast.Attribute(attr="add_error")):
            return
        case ast.Call(func=ast.Attribute(value=ast.Name(id="messages")) | ast.Name(id="_act" | "refuse")):
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
