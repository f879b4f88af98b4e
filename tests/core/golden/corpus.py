"""Put all situations on one page, as sentences.md has them."""

from pathlib import Path

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
HEAD = """\
# What Evalboard says

Each situation is built and judged by the code, and this page is what a person then reads. It is written by
`python -m tests.core.golden --write`, and a test holds the code to it. Read a sentence aloud before you commit it.
"""
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


def _label(sentence: Sentence) -> str:
    return f"{sentence.table} `{sentence.code}`" if sentence.code else sentence.table
