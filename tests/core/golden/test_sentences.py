"""Every sentence is as it was read last, and every code has a situation in which it is read."""

import re
from collections.abc import Iterable
from typing import get_args

import pytest

from evalboard.core.compare import BLOCK_WARNINGS, CAUSES, COMPARISON_WARNINGS
from evalboard.core.stats.one_computation import Answer
from evalboard.wording import (
    cause,
    comparability,
    lab,
    next_steps,
    noise_share,
    probe,
    release_verdict,
    release_warnings,
    run,
)
from evalboard.wording.run_warnings import WARNINGS
from tests.core.golden.corpus import PAGE, list_unversioned, read_all, render
from tests.core.golden.readers import Sentence

MIN_SITUATIONS = 60
Corpus = dict[str, dict[str, list[Sentence]]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_all()


def test_every_sentence_is_as_it_was_read(corpus: Corpus) -> None:
    assert render(corpus).splitlines() == PAGE.read_text().splitlines(), (
        "sentences have changed: read them in the diff of `python -m tests.core.golden`, then add --write"
    )


def test_other_words_of_a_verdict_take_other_rules(corpus: Corpus) -> None:
    """A verdict keeps its sentences, and is taken again by other rules alone. A situation more changes none."""
    now = render(corpus)
    changed = now.replace("- reason `within_tolerance`: On these", "- reason `within_tolerance`: With these")
    named = re.sub("^Verdicts are taken by .*$", "Verdicts are taken by others.", changed, flags=re.MULTILINE)
    more = now.replace("\n## A release\n", "\n**One more**\n\n- reason: So.\n\n## A release\n")
    assert "Nothing moved" in list_unversioned(now, changed)
    assert [list_unversioned(now, page) for page in (now, named, more)] == [[], [], []]
    probes = now.replace("- batch probe", "- the batch probe")
    assert probes != now
    assert not list_unversioned(now, probes)


def test_every_code_has_a_situation(corpus: Corpus) -> None:
    """A block is a reason or a warning; `unknown` has a reason of its own."""
    read = {
        (sentence.table, sentence.code)
        for situations in corpus.values()
        for sentences in situations.values()
        for sentence in sentences
    }
    coded: dict[str, Iterable[str]] = {
        "reason": {*release_verdict.REASONS, *comparability.BLOCKS} - BLOCK_WARNINGS - COMPARISON_WARNINGS,
        "comparison": [*COMPARISON_WARNINGS, "suite_changed"],
        "warning": release_warnings.WARNINGS,
        "step": next_steps.STEPS,
        "cause": [*(code for code in CAUSES if code != "unknown"), *(f"unknown: {why}" for why in cause.REASONS)],
        "two batch probes": probe.COMPARISONS,
        "noise share": noise_share.REASONS,
        "computation": get_args(Answer),
        **{f"run {level}": [row.code for row in WARNINGS if row.severity == level] for level in ("warning", "info")},
        "waiting": run.WAITING,
        "experiment finding": lab.FINDINGS,
        "left out": lab.REASONS,
        **{f"{kind} probe": [*states, "incomplete"] for kind, states in probe.SENTENCES.items()},
    }
    lacking = [f"{table} {code}" for table, codes in coded.items() for code in codes if (table, code) not in read]
    assert not lacking, f"write a situation for each of these in tests/core/golden: {', '.join(lacking)}"


def test_the_corpus_is_as_large_as_it_has_to_be(corpus: Corpus) -> None:
    assert sum(map(len, corpus.values())) >= MIN_SITUATIONS


def test_a_situation_stands_once_and_says_something(corpus: Corpus) -> None:
    for situations in corpus.values():
        for name, sentences in situations.items():
            assert sentences, name
            for sentence in sentences:
                assert not {"None", "nan", "inf"} & set(sentence.text.split()), f"{name}: {sentence.text}"
