"""Put all situations on one page, as sentences.md has them."""

import re
from pathlib import Path

from evalboard.core.release import VERDICT_RULES
from tests.core.golden import (
    bisects,
    causes,
    computations,
    experiments,
    noise_shares,
    on_policy,
    outcomes,
    probes,
    productions,
    releases,
    run_warnings,
    verdicts,
    verifications,
)
from tests.core.golden.readers import Sentence, Situations

PAGE = Path(__file__).parent / "sentences.md"
HEAD = f"""\
# What Evalboard says

Each situation is built and judged by the code, and this page is what a person then reads. It is written by
`python -m tests.core.golden --write`, and a test holds the code to it. Read a sentence aloud before you commit it.

Verdicts are taken by the rules `{VERDICT_RULES}`.
"""
VERDICTS = ("A suite's verdict", "A release")  # whose sentences a verdict keeps
SUBJECTS: dict[str, Situations] = {
    "A suite's verdict": verdicts.SITUATIONS,
    "Cases that changed": outcomes.SITUATIONS,
    "A release": releases.SITUATIONS,
    "Why two answers parted": causes.SITUATIONS,
    "One computation, or two": computations.SITUATIONS,
    "How much is noise": noise_shares.SITUATIONS,
    "Probes": probes.SITUATIONS,
    "Training on-policy": on_policy.SITUATIONS,
    "Does an endpoint serve these weights?": verifications.SITUATIONS,
    "Experiments of the lab": experiments.SITUATIONS,
    "Bisects of the lab": bisects.SITUATIONS,
    "Replays of production": productions.SITUATIONS,
    "Runs": run_warnings.SITUATIONS,
}


def read_all() -> dict[str, dict[str, list[Sentence]]]:
    """Build every situation: its sentences by subject and name."""
    return {subject: {name: build() for name, build in situations.items()} for subject, situations in SUBJECTS.items()}


def render(corpus: dict[str, dict[str, list[Sentence]]]) -> str:
    parts = [HEAD]
    for subject, situations in corpus.items():
        parts.append(f"\n## {subject}\n")
        for name, sentences in situations.items():
            lines = [f"- {_label(sentence)}: {sentence.text}" for sentence in sentences]
            parts.append("\n".join([f"\n**{name}**\n", *lines, ""]))
    return "".join(parts)


def list_unversioned(before: str, now: str) -> list[str]:
    """Return the situations of both pages in which a verdict says something else by rules of one name."""
    pages = [dict(_split(page)) for page in (before, now)]
    rules = [re.findall("^Verdicts are taken by (.*)$", page, re.MULTILINE) for page in (before, now)]
    return [name for name, text in pages[0].items() if rules[0] == rules[1] and pages[1].get(name, text) != text]


def _split(page: str) -> list[tuple[str, str]]:
    """Return (name, sentences) of each situation whose sentences a verdict keeps."""
    subjects = [part.partition("\n") for part in page.split("\n## ")]
    situations = [each for title, _, text in subjects if title in VERDICTS for each in text.split("\n**")[1:]]
    return [(name, text.strip()) for name, _, text in (each.partition("**\n") for each in situations)]


def _label(sentence: Sentence) -> str:
    return f"{sentence.table} `{sentence.code}`" if sentence.code else sentence.table
