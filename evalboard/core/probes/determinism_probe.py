"""Judge whether a node gives the same bits at any load: one certificate per worker (docs/probes.md).

Every prompt is decoded greedily under each condition: with a number of other requests in its step, short or long ones,
and with more requests waiting than there are seats. Each answer is compared with the first, decoded at batch size 1.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby, islice
from typing import Any

import numpy as np

from evalboard.core import digest
from evalboard.core.probes.answers import (
    AnsweredCall,
    certify,
    count_shared,
    make_incomplete_finding,
    read_answers,
)
from evalboard.core.probes.call import ProbeExchange, ProbeResult
from evalboard.core.probes.prompts import LOAD, LONG_LOAD, SHORT_LOAD
from evalboard.core.profile import TESTED_BATCH_SIZES

QUEUED = 4  # requests more than there are seats, so that some wait and start in the middle of others' answers
LOADS = {"short": SHORT_LOAD, "long": LONG_LOAD, "queued": tuple(range(len(LOAD)))}


@dataclass(frozen=True, slots=True)
class Condition:
    """A load condition: `seats` requests share a step. load: "none", "short", "long" or "queued"."""

    seats: int
    load: str


@dataclass(frozen=True, slots=True)
class Round:
    """Requests that are decoded together: `prompts` of the probe, `load` other ones."""

    condition: Condition
    prompts: tuple[int, ...]
    load: tuple[int, ...]


def list_rounds(parameters: Mapping[str, Any]) -> tuple[Round, ...]:
    """Return the rounds that each worker decodes, every condition once before any comes again.

    A round's place is the `round` of its calls.
    """
    n_prompts, seats = len(parameters["prompts"]), parameters["seats"]
    passes = (_pass(condition, n_prompts) for _ in range(parameters["passes"]) for condition in _conditions(seats))
    return tuple(each for rounds in passes for each in rounds)


def plan_determinism_calls(parameters: Mapping[str, Any]) -> tuple[ProbeExchange, ...]:
    """Return the calls to each worker, in random order within a round."""
    rng = np.random.default_rng(parameters["random_seed"])
    calls: list[ProbeExchange] = []
    for place, each in enumerate(list_rounds(parameters)):
        here = [ProbeExchange(prompt=prompt, group="copy", round=place) for prompt in each.prompts]
        here += [ProbeExchange(prompt=prompt, group="load", round=place) for prompt in each.load]
        calls += [here[index] for index in rng.permutation(len(here))]
    return tuple(calls)


def judge_determinism_probe(calls: Iterable[ProbeExchange], *, parameters: Mapping[str, Any]) -> ProbeResult:
    """Judge each worker that answered: certified, bits_move, answers_move or incomplete.

    The state is that of the worst worker; one that was gone before its last round decides nothing unless its answers
    moved. A worker's first answer to a prompt is what its others are held against;
    `n_rounds` counts the rounds of these. Workers are not held against each other: that is an audit's to do.
    """
    answers = read_answers(call for call in calls if call.group == "copy" and call.was_sent)
    conditions = [each.condition for each in list_rounds(parameters)]
    by_worker = groupby(sorted(answers.answered, key=_order), key=lambda each: (each.call.worker, each.call.bucket))
    workers = [_worker(list(theirs), conditions) for _, theirs in by_worker]
    deciding = [row for row in workers if row["is_certified"] or _moved([row])]
    if not deciding or (answers.n_failed and not _moved(deciding)):
        return make_incomplete_finding(answers)  # what did not come may be what would have moved
    n_rounds = min(row["n_rounds"] for row in deciding)
    numbers = {
        **answers.counts,
        "compared": answers.unit,
        "seats": parameters["seats"],
        "seats_reached": min(row["seats_reached"] for row in deciding),
        "n_conditions": len(set(conditions)),
        "n_rounds": n_rounds,
        "certificate": None if _moved(deciding) else certify(n_rounds),
        "workers": workers,
    }
    return ProbeResult(_state(deciding), numbers)


def _conditions(seats: int) -> Iterator[Condition]:
    yield Condition(1, "none")
    for size in sorted({size for size in TESTED_BATCH_SIZES if size < seats} | ({seats} - {1})):
        yield Condition(size, "short")
        yield Condition(size, "long")
    yield Condition(seats, "queued")


def _pass(condition: Condition, n_prompts: int) -> Iterator[Round]:
    """Yield rounds that decode every prompt once under a condition.

    At least one request of each step is load.
    """
    n_queued = QUEUED if condition.load == "queued" else 0
    n_beside = max(1, condition.seats - 1)
    for start in range(0, n_prompts, n_beside):
        prompts = tuple(range(start, min(start + n_beside, n_prompts)))
        n_load = condition.seats - len(prompts) + n_queued
        texts = cycle(LOADS.get(condition.load, ()))
        yield Round(condition, prompts, tuple(n_prompts + text for text in islice(texts, n_load)))


def _worker(theirs: Sequence[AnsweredCall], conditions: Sequence[Condition]) -> dict[str, Any]:
    """Return what one worker gave, condition by condition. theirs: in the order of rounds."""
    first: dict[int, AnsweredCall] = {}
    by_condition: dict[Condition, list[AnsweredCall]] = {}
    for each in theirs:
        first.setdefault(each.call.prompt, each)
        by_condition.setdefault(conditions[each.call.round], []).append(each)
    rows = [_condition(condition, copies, first) for condition, copies in by_condition.items()]
    is_whole = {each.call.round for each in theirs} == set(range(len(conditions)))
    return {
        "worker": theirs[0].call.worker,
        "bucket": theirs[0].call.bucket,
        "fingerprint": theirs[0].call.fingerprint,
        "is_certified": is_whole and not _moved(rows),
        "n_rounds": len({each.call.round for each in theirs if each is not first[each.call.prompt]}),
        "n_texts_moved": sum(row["n_texts_moved"] for row in rows),
        "n_bits_moved": sum(row["n_bits_moved"] for row in rows),
        "seats_reached": max(row["batch_max"] for row in rows),
        "conditions": rows,
    }


def _condition(
    condition: Condition, copies: Sequence[AnsweredCall], first: Mapping[int, AnsweredCall]
) -> dict[str, Any]:
    """Return how often answers changed under a condition, and one digest of all of them."""
    outputs = Counter((each.call.prompt, each.call.trace_digest, each.answer) for each in copies)
    texts = [each for each in copies if each.answer != first[each.call.prompt].answer]
    bits = [each for each in copies if each.call.trace_digest != first[each.call.prompt].call.trace_digest]
    return {
        "seats": condition.seats,
        "load": condition.load,
        "batch_max": max(each.call.batch_max or 1 for each in copies),
        "n_copies": len(copies),
        "digest": digest.digest_json(sorted([prompt, trace, list(answer)] for prompt, trace, answer in outputs)),
        "n_texts_moved": len(texts),
        "n_bits_moved": len(bits),
        "first": _place(texts[0], first[texts[0].call.prompt]) if texts else None,
    }


def _place(moved: AnsweredCall, first: AnsweredCall) -> dict[str, Any]:
    """Say where an answer leaves the first one of its prompt."""
    return {"prompt": moved.call.prompt, "position": count_shared(first.answer, moved.answer)}


def _moved(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any(row["n_bits_moved"] or row["n_texts_moved"] for row in rows)


def _state(deciding: Sequence[Mapping[str, Any]]) -> str:
    if any(row["n_texts_moved"] for row in deciding):
        return "answers_move"
    return "bits_move" if _moved(deciding) else "certified"


def _order(each: AnsweredCall) -> tuple[int, int, int, int]:
    return each.call.worker or 0, each.call.bucket or 0, each.call.round, each.call.prompt
