"""Which cases tell most of what moved between two runs, and where their answers part."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evalboard.core.compare import TracedText, find_divergence
from evalboard.core.lab import digest_head, find_parting
from runs.compare import ComparisonInputs
from runs.models import Case, RepeatRecord, ResponseRecord
from runs.pairs import stored_words
from runs.store import stored_traces

FLIPS_READ = 500  # of cases that differ, those whose score moved first
BESIDE = 4  # cases that did not move, decoded with the chosen ones


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCase:
    """A case whose answers part at position `at`, in tokens or characters (`unit`), from 0.

    index, index_candidate: in the suite version of either run. baseline, candidate: digests of either answer up to
    there and with it. movement: in nats, None where it is not known. story: cases with the same one parted on the same
    two tokens. tokens: what either answer has there, for people; None where it had ended.
    """

    case: str
    index: int
    index_candidate: int
    unit: str
    at: int
    baseline: str
    candidate: str
    score_baseline: float | None
    score_candidate: float | None
    movement: float | None
    story: tuple[Any, ...]
    tokens: tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class ChosenCases:
    """The cases that a bisect decodes.

    cases: of `n_flips` whose answers diverge. beside: control cases that did not change, {"case", "index",
    "index_candidate", "text"}, the last being the text's digest.
    """

    cases: tuple[ChosenCase, ...]
    beside: tuple[dict[str, Any], ...]
    n_flips: int

    def to_json(self) -> dict[str, Any]:
        return {"cases": [asdict(each) for each in self.cases], "beside": list(self.beside), "n_flips": self.n_flips}


def choose_cases(inputs: ComparisonInputs, *, limit: int) -> ChosenCases:
    """Choose the cases of two runs that a bisect decodes, from one repeat of each.

    Those whose score moved come first, then those whose logits moved furthest at the flip; of the cases that parted on
    the same two tokens the first comes before the others'.
    """
    ours, theirs = inputs.baseline, inputs.candidate
    there = ours.texts.any(axis=(1, 2)) & theirs.texts.any(axis=(1, 2))
    has_other_text = there & (ours.texts[:, 0] != theirs.texts[:, 0]).any(axis=1)
    differ = has_other_text | (there & (ours.traces[:, 0] != theirs.traces[:, 0]).any(axis=1))
    has_moved = np.nan_to_num(ours.scores[:, 0] - theirs.scores[:, 0]) != 0
    rows = np.flatnonzero(differ)
    rows = rows[np.lexsort((rows, ~has_other_text[rows], ~has_moved[rows]))][:FLIPS_READ]
    cases = _read_cases(inputs, rows.tolist())
    n_flips = max(len(cases), int(has_other_text.sum()))
    same = np.flatnonzero(there & ~has_other_text)
    chosen = same[np.linspace(0, len(same) - 1, min(BESIDE, len(same))).astype(int)] if len(same) else same
    return ChosenCases(tuple(_spread(cases)[:limit]), tuple(_read_beside(inputs, chosen.tolist())), n_flips)


def read_answers(repeat: RepeatRecord, indexes: Iterable[int]) -> dict[int, TracedText]:
    """Return a repeat's answers to these cases, without those that are missing."""
    rows = ResponseRecord.objects.filter(repeat=repeat, case_index__in=set(indexes), error_code="")
    fields = ("case_index", "text", "trace_block", "trace_slot", "engine_process__vocabulary")
    stored = list(rows.order_by("case_index").values_list(*fields))
    traced = [(block, slot) for _, _, block, slot, _ in stored if block is not None and slot is not None]
    traces = dict(zip(traced, stored_traces.read(traced), strict=True))
    return {
        index: TracedText(text, traces.get((block, slot)), vocabulary, is_logged=False)
        for index, text, block, slot, vocabulary in stored
    }


def _read_cases(inputs: ComparisonInputs, rows: Sequence[int]) -> list[ChosenCase]:
    """Return the cases of these rows whose answers part, in tokens or in characters."""
    sides = (inputs.baseline, inputs.candidate)
    indexes = [side.case_indexes[rows].tolist() for side in sides]
    answers = [
        read_answers(RepeatRecord.objects.get(pk=side.key.repeat_ids[0]), own)
        for side, own in zip(sides, indexes, strict=True)
    ]
    names = _case_names(inputs, indexes[0])
    cases = []
    for row, index, other in zip(rows, *indexes, strict=True):
        ours, theirs = answers[0].get(index), answers[1].get(other)
        parted = None if ours is None or theirs is None else _part(ours, theirs)
        if parted is None:
            continue
        scores = [None if np.isnan(side.scores[row, 0]) else float(side.scores[row, 0]) for side in sides]
        cases.append(
            ChosenCase(
                case=names[index],
                index=index,
                index_candidate=other,
                score_baseline=scores[0],
                score_candidate=scores[1],
                **parted,
            )
        )
    return cases


def _part(ours: TracedText, theirs: TracedText) -> dict[str, Any] | None:
    """Return where two answers part, and how; None where only logprobs differ."""
    has_tokens = ours.trace is not None and theirs.trace is not None and ours.vocabulary_id == theirs.vocabulary_id
    if has_tokens and ours.trace is not None and theirs.trace is not None:
        tokens = ours.trace.token_ids.tolist(), theirs.trace.token_ids.tolist()
        at = find_parting(*tokens)
        if at is not None:
            divergence = find_divergence(ours.trace, theirs.trace)
            story = (divergence.token_baseline, divergence.token_candidate)
            drawn = tuple(_draw(ids, at, ours.vocabulary_id) for ids in tokens)
            return _heads("token", at, *tokens, movement=divergence.movement, story=story, tokens=drawn)
    at = find_parting(ours.text, theirs.text)
    if at is None:
        return None
    drawn = tuple(text[at : at + 1] or None for text in (ours.text, theirs.text))
    return _heads("text", at, ours.text, theirs.text, movement=None, story=("text",), tokens=drawn)


def _draw(token_ids: Sequence[int], at: int, vocabulary_id: int | None) -> str | None:
    """Return a token as traces draw it; None where the answer had ended."""
    if at >= len(token_ids):
        return None
    if vocabulary_id is None:
        return f"⟨token {token_ids[at]}⟩"
    return stored_words(vocabulary_id).draw([token_ids[at]])[0]


def _heads(unit: str, at: int, ours: Any, theirs: Any, **more: Any) -> dict[str, Any]:
    return {"unit": unit, "at": at, "baseline": digest_head(ours, at), "candidate": digest_head(theirs, at), **more}


def _spread(cases: Sequence[ChosenCase]) -> list[ChosenCase]:
    """Sort cases: changed scores first, one of each story at a time, the largest logit movement first."""
    by_size = sorted(cases, key=lambda case: (case.score_baseline == case.score_candidate, -(case.movement or 0.0)))
    earlier: Counter[tuple[bool, tuple[Any, ...]]] = Counter()
    placed = []
    for at, case in enumerate(by_size):
        has_stayed = case.score_baseline == case.score_candidate
        placed.append(((has_stayed, earlier[has_stayed, case.story], at), case))
        earlier[has_stayed, case.story] += 1
    return [case for _, case in sorted(placed, key=lambda row: row[0])]


def _read_beside(inputs: ComparisonInputs, rows: Sequence[int]) -> Iterable[dict[str, Any]]:
    ours, theirs = inputs.baseline, inputs.candidate
    names = _case_names(inputs, ours.case_indexes[rows].tolist())
    for row in rows:
        index = int(ours.case_indexes[row])
        yield {
            "case": names[index],
            "index": index,
            "index_candidate": int(theirs.case_indexes[row]),
            "text": ours.texts[row, 0].tobytes().hex(),
        }


def _case_names(inputs: ComparisonInputs, indexes: Sequence[int]) -> dict[int, str]:
    version = inputs.baseline.key.run.suite_version_id
    return dict(Case.objects.filter(suite_version=version, index__in=indexes).values_list("index", "case_id"))
