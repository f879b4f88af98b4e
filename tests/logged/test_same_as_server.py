"""Two logs compared without a server come to what the server answers of them, to the byte, ids and addresses aside."""

import io
import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from evalboard.compared.pair_layout import WINDOW
from evalboard.contract.base import Contract
from evalboard.contract.pair import TracePair
from evalboard.core.archive import RunArchive
from evalboard.core.errors import InvalidInput
from evalboard.importers import formats
from evalboard.importers.files import LogFile
from evalboard.importers.records import (
    LoggedCase,
    LoggedPosition,
    LoggedPositions,
    LoggedResponse,
    LoggedRun,
    LoggedScore,
    ServedBy,
)
from evalboard.logged.archived import add_archive
from evalboard.logged.comparing import LogComparison
from evalboard.logged.memory import LogStore
from evalboard.logged.shown import show_log_pair
from runs import exports
from runs.compare import DivergenceFilter, compare, divergence_rows, pair_excerpts, report_of, trace_pair
from runs.imports import imports
from runs.models import BackendNameRecord, ImportRecord, RunRecord
from runs.pairs.pair_facts import forget_names
from runs.suites import adopt_scorer, rescore_run
from runs.tour import load_tour
from tests import build
from tests.nightly import few, nightly
from tests.recorded import LOGS
from tests.runs import logs

pytestmark = pytest.mark.django_db

# Of a pair side by side, what its answers tell; the rest is provenance, of which a log has none.
SIDE_BY_SIDE = (
    "case",
    "cause",
    "numeric",
    "n_positions",
    "at",
    "positions",
    "parts_at",
    "shorter",
    "last_at",
    "earlier",
)
SIDE_BY_SIDE += ("later", "points", "n_points", "shown_points", "n_within_noise", "gap_range", "drift_onset")
SIDE_BY_SIDE += ("flip_position", "margin_baseline", "text_position", "is_approximate", "target")
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
SAMPLES = {
    "inspect": (["inspect/fp32_baseline.eval"], ["inspect/bf16_candidate.eval"]),
    "inspect, killed": (["inspect/fp32_baseline.eval"], ["inspect/killed_started.eval"]),
    "killed, inspect": (["inspect/killed_started.eval"], ["inspect/fp32_baseline.eval"]),
    "chat": (["openai_chat/chat_fp32.jsonl"], ["openai_chat/chat_bf16_conc8.jsonl"]),
    "stream, chat": (["openai_chat/stream.sse"], ["openai_chat/stream.sse"]),
    "litellm": (["litellm/proxy.jsonl"], ["litellm/proxy.jsonl"]),
    "promptfoo": (["promptfoo/out_fp32.json"], ["promptfoo/out_fp32.json"]),
    "rollouts": (["rollouts/plain_fp32.jsonl"], ["rollouts/plain_fp32.jsonl"]),
    "batch": (["vllm_run_batch/batch_input.jsonl", "vllm_run_batch/batch_output.jsonl"],) * 2,
    "batch, no prompts": (["vllm_run_batch/batch_output.jsonl"],) * 2,
    "lm_eval": (
        [
            "lm_eval/results_2026-11-21T02-09-11.104148.json",
            "lm_eval/samples_smol_facts_gen_2026-11-21T02-09-11.104148.jsonl",
        ],
    )
    * 2,
}


def read(names: list[str]) -> list[LoggedRun]:
    return formats.read_logs([LogFile(Path(name).name, LOGS / name) for name in names])[1]


def both_ways(ours: LoggedRun, theirs: LoggedRun, **terms: str) -> tuple[list[Any], list[Any]]:
    """What the server and the memory say: the comparison, then each pair."""
    runs = [_stored(each, place) for place, each in enumerate((ours, theirs))]
    row = compare(baseline=runs[0].pk, candidate=runs[1].pk, **terms)
    pairs = divergence_rows(row.pk, DivergenceFilter(), limit=10_000)
    store = LogStore(now=NOW)
    added = [store.add(each, source=_source(place)) for place, each in enumerate((ours, theirs))]
    made = LogComparison(store, added[0], added[1], at=NOW, **terms)
    alone = [made.comparison, *made.write_pairs(made.pairs)]
    shown: list[Contract] = []
    if made.pairs:  # the gravest, laid side by side
        repeats, (first, *_) = (pairs[0].repeat_baseline, pairs[0].repeat_candidate), made.pairs
        both = runs[0].pk, runs[1].pk
        shown = [trace_pair(*both, case_id=pairs[0].case, repeats=repeats, terms=made.terms)]
        alone.append(show_log_pair(made, first, made.write_pairs([first])[0], around=WINDOW))
    return [_plain(each) for each in (report_of(row), *pairs, *shown)], [_plain(each) for each in alone]


def archived_ways(*runs: RunRecord) -> tuple[list[Any], list[Any]]:
    """What the server says of two runs, and what the memory does of their archives."""
    row = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    pairs = divergence_rows(row.pk, DivergenceFilter(), limit=10_000)
    store = LogStore(now=NOW)
    archives = (RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk)))) for run in runs)
    made = LogComparison(
        store, *(add_archive(store, each, source=_source(place)) for place, each in enumerate(archives)), at=NOW
    )
    return _as_json(report_of(row), *pairs), _as_json(made.comparison, *made.write_pairs(made.pairs))


def _as_json(*values: Contract) -> list[Any]:
    """What REST answers, without what only an installation has."""
    return [_strip(json.loads(json.dumps(each.to_json()))) for each in values]


def _source(place: int) -> str:
    return f"{place:064x}"


def _stored(logged: LoggedRun, place: int) -> RunRecord:
    with transaction.atomic():
        source = ImportRecord.objects.create(format="chat", tool=logged.tool, digest=_source(place), files=[])
        ImportRecord.objects.filter(pk=source.pk).update(created_at=NOW)
        source.refresh_from_db()
        return imports.store_log(logged=logged, source=source, suite=None, user=None)


def _plain(value: Contract) -> str:
    """JSON, without what only an installation has; what is for pages alone as well."""
    stored = value.to_stored()
    if isinstance(value, TracePair):
        stored = {name: stored[name] for name in SIDE_BY_SIDE}
    return json.dumps(_strip(stored), default=str, sort_keys=True)  # PostgreSQL keeps no order


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        own = {"id", "url", "run", "finished_at", "speed"} | (
            {"baseline", "candidate"} if "progress" in value else set()
        )
        return {name: _strip(part) for name, part in value.items() if name not in own}
    return [_strip(part) for part in value] if isinstance(value, list | tuple) else value


def moved(logged: LoggedRun) -> LoggedRun:
    """The log of another stack: every third answer has other logprobs, every fifth another text and no score."""

    def move(place: int, one: LoggedResponse) -> LoggedResponse:
        if place % 3 == 0 and one.positions is not None:
            one = replace(one, positions=replace(one.positions, logprobs=one.positions.logprobs - 0.25))
        if place % 5 == 0 and not one.error:
            scores = {name: LoggedScore(0.0, "wrong") for name in one.scores}
            one = replace(one, text=f"{one.text} or not", scores=scores, positions=None)
        return replace(one, served_by=ServedBy(key="other", key_from="system_fingerprint", system_fingerprint="other"))

    return replace(logged, responses=tuple(move(place, each) for place, each in enumerate(logged.responses)))


@pytest.mark.parametrize("names", few([pytest.param(names, id=name) for name, names in SAMPLES.items()], 4))
def test_samples_come_to_the_same(names: tuple[list[str], list[str]]) -> None:
    ours, theirs = (read(each) for each in names)
    theirs = theirs if names[0] != names[1] else [moved(each) for each in theirs]
    for one, other in zip(ours, theirs, strict=False):
        server, memory = both_ways(one, other)
        assert memory == server
        assert len(server) > 1


CASES = tuple(f"case-{number:02}" for number in range(24))
WORDS = ("red", " green", " blue", " grey", " pink")


def drawn(seed: int, *, n_repeats: int = 3, noise: float = 0.002, **changes: Any) -> LoggedRun:
    """A log of 24 cases whose logprobs lie a little apart from repeat to repeat, and now and then another word."""
    chance = random.Random(seed)
    responses = [_drawn(case, repeat, chance, noise) for case in CASES for repeat in range(1, n_repeats + 1)]
    return logs.log(*responses, cases=tuple(logs.case(case) for case in CASES), **changes)


def _drawn(case: str, repeat: int, chance: random.Random, noise: float) -> LoggedResponse:
    usual = random.Random(case)
    words = [usual.choice(WORDS) for _ in range(8)]
    if chance.random() < 0.1:
        words[3] = chance.choice(WORDS)
    rows = [
        LoggedPosition(
            word.encode(),
            value := -usual.random() + chance.gauss(0, noise),
            ((word.encode(), value), (b" black", -1.5 - usual.random() + chance.gauss(0, noise))),
        )
        for word in words
    ]
    positions = LoggedPositions.from_positions(rows)
    score = float(chance.random() < 0.6)
    return logs.response(case, repeat, *words, score=score, positions=positions, request_id=f"{chance.random()}")


def edit(logged: LoggedRun, change: Callable[[LoggedResponse], LoggedResponse | None]) -> LoggedRun:
    return replace(logged, responses=tuple(one for each in logged.responses if (one := change(each)) is not None))


def stray(one: LoggedResponse) -> LoggedResponse:
    if one.repeat != 2 or one.case_id > "case-11" or one.positions is None:
        return one
    return replace(one, positions=replace(one.positions, logprobs=one.positions.logprobs - 0.4))


def error(one: LoggedResponse) -> LoggedResponse | None:
    if one.case_id == "case-03":
        return replace(one, error="refused", is_prompt_filtered=True)
    if one.case_id == "case-04":
        return replace(one, error="timed out")
    return None if (one.case_id, one.repeat) == ("case-05", 2) else one


def other_backend(one: LoggedResponse) -> LoggedResponse:
    return replace(one, served_by=logs.BFLOAT16) if one.case_id > "case-15" else one


def cached(one: LoggedResponse) -> LoggedResponse:
    return replace(one, flags=("cached",), finish_reason="done") if one.case_id < "case-06" else one


def unspelled(one: LoggedResponse) -> LoggedResponse:
    return replace(one, trace_reason="spelled_otherwise") if one.case_id < "case-06" else one


def once(one: LoggedResponse) -> LoggedResponse | None:
    return one if one.case_id > "case-10" or one.repeat == 1 else None


def fewer(logged: LoggedRun) -> LoggedRun:
    later = edit(logged, lambda one: one if one.case_id > "case-10" else None)
    return replace(later, cases=tuple(map(logs.case, CASES[11:])))


def hours(after: int) -> dict[str, Any]:
    return {"started_at": NOW - timedelta(hours=9 - after), "finished_at": NOW - timedelta(hours=8.5 - after)}


def copied(logged: LoggedRun) -> LoggedRun:
    """The log with its first repeat in place of the others."""
    first = {one.case_id: one for one in logged.responses if one.repeat == 1}
    return edit(logged, lambda one: replace(first[one.case_id], repeat=one.repeat))


SAMPLED = {"temperature": 0.8, "max_tokens": 24, "seed": 7}
MADE: dict[str, tuple[Callable[[], LoggedRun], Callable[[], LoggedRun]]] = {
    "repeats": (lambda: drawn(1), lambda: drawn(2)),
    "another computation": (lambda: drawn(1), lambda: drawn(2, noise=0.2)),
    "strays": (lambda: edit(drawn(1), stray), lambda: drawn(2)),
    "missing": (lambda: drawn(1), lambda: edit(drawn(2), error)),
    "two backends": (lambda: drawn(1), lambda: edit(drawn(2), other_backend)),
    "nothing names the stack": (lambda: logs.served(drawn(1), logs.UNKNOWN), lambda: logs.served(drawn(2), ServedBy())),
    "cached": (lambda: edit(drawn(1), cached), lambda: drawn(2)),
    "not spelled": (lambda: edit(drawn(1), unspelled), lambda: edit(drawn(2), unspelled)),
    "text alone": (lambda: logs.without_tokens(drawn(1)), lambda: logs.without_tokens(drawn(2))),
    "another model": (lambda: drawn(1), lambda: drawn(2, model="lab/paint-2b")),
    "sampled": (lambda: drawn(1, sampling=SAMPLED), lambda: drawn(2, sampling=SAMPLED)),
    "other settings": (lambda: drawn(1), lambda: drawn(2, sampling={"temperature": 0, "max_tokens": 12})),
    "other scorer": (lambda: drawn(1), lambda: drawn(2, tool="eval_tool 2")),
    "fewer cases": (
        lambda: drawn(1),
        lambda: replace(
            edit(drawn(2), lambda one: one if one.case_id > "case-10" else None),
            cases=tuple(map(logs.case, CASES[11:])),
        ),
    ),
    "repeats of some": (
        lambda: drawn(1),
        lambda: edit(drawn(2), lambda one: one if one.case_id > "case-10" or one.repeat == 1 else None),
    ),
    "copies": (lambda: copied(drawn(1, **hours(0))), lambda: copied(drawn(2, **hours(4)))),
    "broken off": (lambda: drawn(1), lambda: edit(drawn(2, status="cancelled"), error)),
    "no scores": (lambda: drawn(1), lambda: edit(drawn(2, scorers=()), lambda one: replace(one, scores={}))),
    "one log twice": (lambda: drawn(1), lambda: drawn(1)),
}


def prompted(logged: LoggedRun, system: str, *, question: str = "Which {}?", own_input: bool = True) -> LoggedRun:
    """The log with a system prompt, and with questions of this form about what the cases are called."""

    def put(case: LoggedCase) -> LoggedCase:
        asked = question.format(case.id)
        messages = ({"role": "system", "content": system}, {"role": "user", "content": asked})
        return replace(case, messages=messages, input=case.id if own_input else "")

    return replace(logged, cases=tuple(map(put, logged.cases)))


def mixed(logged: LoggedRun, system: str) -> LoggedRun:
    """The log with another prompt: every other case has another input, one no partner, and one another target."""
    other = prompted(logged, system)
    cases = [replace(case, input="more") if place % 2 else case for place, case in enumerate(other.cases)]
    cases[0], cases[2] = replace(cases[0], input="unlike any"), replace(cases[2], target="x")
    return replace(other, cases=tuple(cases))


PROMPTS: dict[str, tuple[Callable[[], LoggedRun], Callable[[], LoggedRun], dict[str, str]]] = {
    "system prompt": (lambda: prompted(drawn(1), "Be short."), lambda: prompted(drawn(2), "Be long."), {}),
    "template, by the last user message": (
        lambda: prompted(drawn(1), "Be short.", own_input=False),
        lambda: prompted(logs.without_tokens(drawn(2)), "Be long.", own_input=False),
        {},
    ),
    "template around the input": (
        lambda: prompted(drawn(1), "Be short.", question="{}"),
        lambda: prompted(drawn(2), "Be short.", question="Say of {} what it is."),
        {"treatment": "prompt"},
    ),
    "half of the inputs": (
        lambda: prompted(drawn(1), "Be short."),
        lambda: mixed(drawn(2), "Be long."),
        {"treatment": "prompt"},
    ),
    "by id": (lambda: prompted(drawn(1), "Be short."), lambda: mixed(drawn(2), "Be long."), {"pair_by": "id"}),
    "another model and stack": (
        lambda: prompted(drawn(1), "Be short."),
        lambda: prompted(edit(drawn(2, model="lab/paint-2b"), other_backend), "Be long."),
        {"treatment": "prompt"},
    ),
    "no other prompt": (lambda: drawn(1), lambda: drawn(2), {"treatment": "prompt"}),
    "an engine": (lambda: drawn(1), lambda: logs.served(drawn(2), logs.BFLOAT16), {"treatment": "stack"}),
}


@pytest.mark.parametrize("make", few([pytest.param(made, id=name) for name, made in PROMPTS.items()], 3))
def test_prompts_are_compared_the_same(
    make: tuple[Callable[[], LoggedRun], Callable[[], LoggedRun], dict[str, str]],
) -> None:
    server, memory = both_ways(make[0](), make[1](), **make[2])
    assert memory == server


@pytest.mark.parametrize("make", few([pytest.param(made, id=name) for name, made in MADE.items()], 6))
def test_made_logs_come_to_the_same(make: tuple[Callable[[], LoggedRun], Callable[[], LoggedRun]]) -> None:
    server, memory = both_ways(*(each() for each in make))
    assert memory == server


ARCHIVED = ("strays", "missing", *nightly(["two backends", "not spelled", "other scorer", "repeats of some"]))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ARCHIVED)
def test_archives_of_logs_come_to_the_same(name: str) -> None:
    server, memory = archived_ways(*(_stored(make(), place) for place, make in enumerate(MADE[name])))
    assert memory == server


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_archives_of_engines_come_to_the_same() -> None:
    other = build.process(build.bucket("bfloat16"))
    rows = ("blue", "red", None), ("blue", "=2+2", "red")
    server, memory = archived_ways(build.finished_run(*rows), build.finished_run(*rows, by=other))
    assert memory == server
    assert len(server) > 1


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_rescored", [True, False])
def test_archives_under_two_scorers_come_to_the_same(is_rescored: bool) -> None:
    """The candidate's scorer judges both sides where the baseline's archive has its scores."""
    folded = {"kind": "exact", "normalise": {"case": "fold"}}
    ours = build.finished_run(("blue", "BLUE", "red"))
    version, _ = adopt_scorer(slug="colours", scorer=folded)
    theirs = build.finished_run(("blue", "BLUE", "blue"), version=version, by=build.process())
    if is_rescored:
        rescore_run(run_id=ours.pk, scorer=folded)
    server, alone = archived_ways(ours, theirs)
    assert alone == server
    codes = [block["code"] for block in server[0]["blocks"]]
    assert codes == (["scorer_shared"] if is_rescored else ["scorer_changed"])
    assert server[0]["score"]["baseline"] == pytest.approx(200 / 3 if is_rescored else 100 / 3)


@pytest.mark.django_db(transaction=True)
def test_an_archive_and_a_log_come_to_the_same() -> None:
    run = build.finished_run(["blue", "red", "blue"], version=build.suite(case_ids=logs.CASES))
    archive = RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk))))
    logged = logs.log(*(logs.response(case, 1, "blue", score=0.0) for case in logs.CASES))
    row = compare(baseline=run.pk, candidate=_stored(logged, 1).pk)
    pairs = divergence_rows(row.pk, DivergenceFilter(), limit=100)
    store = LogStore(now=NOW)
    made = LogComparison(
        store, add_archive(store, archive, source=_source(0)), store.add(logged, source=_source(1)), at=NOW
    )
    memory = _as_json(made.comparison, *made.write_pairs(made.pairs))
    assert memory == _as_json(report_of(row), *pairs)
    assert round(made.comparison.score.difference or 0, 1) == 33.3  # by the scorer of the suite, not by the log's


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_the_tour_comes_to_the_same() -> None:
    load_tour(user=build.user())
    runs = list(RunRecord.objects.filter(suite_version__suite__slug="sample-tour").order_by("pk"))
    for one, other in pairwise(runs):
        forget_names()
        BackendNameRecord.objects.all().delete()  # letters of an endpoint, where a third run was seen before
        server, memory = archived_ways(one, other)
        assert memory == server
    assert len(server) > 1


def test_without_a_case_in_common_both_refuse() -> None:
    other = replace(drawn(2), cases=tuple(logs.case(each, target="x") for each in CASES))
    with pytest.raises(InvalidInput, match="is the same"):
        both_ways(drawn(1), other)
    store = LogStore(now=NOW)
    made = LogComparison(store, store.add(drawn(1), source="1"), store.add(other, source="2"), at=NOW)
    with pytest.raises(InvalidInput, match="is the same"):
        _ = made.report


@pytest.mark.nightly
def test_a_case_that_versions_number_otherwise_is_shown_with_its_own_answer() -> None:
    ours, theirs = drawn(1), fewer(edit(drawn(2), lambda one: replace(one, text=f"{one.text} of {one.case_id}")))
    runs = [_stored(each, place) for place, each in enumerate((ours, logs.without_tokens(theirs)))]
    row = compare(baseline=runs[0].pk, candidate=runs[1].pk)
    pairs = [pair for pair in divergence_rows(row.pk, DivergenceFilter(), limit=100) if pair.cause != "error"]
    excerpts = pair_excerpts((runs[0].pk, runs[1].pk), pairs, [""] * len(pairs))
    shown = {(pair.case, cut.candidate.after) for pair, cut in zip(pairs, excerpts, strict=True) if cut}
    assert shown
    assert all(case in after for case, after in shown)
