"""The cases in a report of two compared logs: a line each, and both answers next to each other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalboard.compared.pair_layout import show_pair
from evalboard.compared.report import to_points
from evalboard.contract.compare import SIDES, CaseOutcome, ComparedCase, Moved
from evalboard.contract.pair import PairPrompts, PairSide, TracePair
from evalboard.contract.parts import ResponseError
from evalboard.core.compare import (
    CASE_PARTS,
    NO_BUCKET,
    UNNAMED,
    Divergence,
    ResponseFacts,
    TracedText,
    cut_texts,
    find_parting,
    list_scores,
)
from evalboard.core.images import prompt_text
from evalboard.core.profile import UNKNOWN_STACK
from evalboard.core.trace import TokenTrace, Vocabulary
from evalboard.logged.comparing import DifferingPair, LogComparison
from evalboard.logged.memory import LogRun
from evalboard.wording.manifest import render_field_name, render_sides

MAX_TEXT = 2400  # characters shown of one text
BEFORE = 400  # of them before the answers part


@dataclass(frozen=True, slots=True)
class ListedLogCase:
    """One case of both logs. part: that of CASE_PARTS which it is in.

    tokens: each answer's text where the two diverge, made readable; "" if they do not, or if one is missing. pair: the
    representative one; None if no pair differs.
    """

    outcome: CaseOutcome
    part: str
    tokens: tuple[str, str]
    pair: DifferingPair | None


@dataclass(frozen=True, slots=True)
class CutTexts:
    """Both texts of a pair around where they diverge.

    parts_at: the place in both, None if they are equal. n_left_out: characters of each that are not shown.
    """

    texts: tuple[str, str]
    parts_at: int | None
    n_left_out: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Traced:
    trace: TokenTrace | None
    words: Vocabulary | None


def list_cases(made: LogComparison) -> list[ListedLogCase]:
    """Return every case of both logs: changed scores first, then changed texts, worst first."""
    parts, ours, theirs = made.case_parts.tolist(), *(side.scored_draws[0].scores for side in made.sides)
    chances = _find_chances(made)
    worst = {each.pair.flip.case_index: (at, each.pair) for at, each in enumerate(made.list_worst())}
    rows = dict(zip(worst, made.write_pairs(pair for _, pair in worst.values()), strict=True))
    cases = []
    for place, case in enumerate(made.cases[0].tolist()):
        document = made.baseline.suite_version.cases[case]
        at, pair = worst.get(case, (len(worst) + place, None))
        part = CASE_PARTS[parts[place]]
        row, (chance, is_beyond) = rows.get(case), chances.get(case, (None, False))
        before, after = (tuple(map(to_points, list_scores(side[place]))) for side in (ours, theirs))
        shown = CaseOutcome(
            case=document.id,
            scores_baseline=before,
            scores_candidate=after,
            chance=chance,
            is_beyond_chance=is_beyond,
            cause=row.cause if row else None,
            url="",
            pair=row,
            prompt=prompt_text(document.messages[-1].get("content")),
        )
        tokens = ("", "") if row is None or pair is None else _name_tokens(made, row, pair, part)
        cases.append(((parts[place], at), ListedLogCase(shown, part, tokens, pair)))
    return [each for _, each in sorted(cases, key=lambda placed: placed[0])]


def show_log_pair(made: LogComparison, pair: DifferingPair, row: ComparedCase, *, around: tuple[int, int]) -> TracePair:
    """Return both answers of a pair around where they part. row: the pair as a list has it."""
    facts, case = made.answers(pair), made.baseline.suite_version.cases[pair.flip.case_index]
    has_tokens = not made.terms.is_prompt  # texts alone are compared where the prompt is judged
    texts = [
        TracedText(
            "" if each is None else each.text,
            each.place if each is not None and has_tokens else None,
            None if each is None else each.vocabulary_id,
            is_logged=run.is_reported,
        )
        for each, run in zip(facts, (made.baseline, made.candidate), strict=True)
    ]
    is_missing = any(each is None or each.error_code for each in facts)
    parting = None if is_missing else find_parting(texts[0], texts[1], made.store.words)
    halves = [_Traced(each.trace, _words(made, each.vocabulary_id)) for each in texts]
    laid = show_pair(
        (halves[0], halves[1]),
        parting,
        vocabularies=made.store.words.of(texts[0], texts[1]),
        near=row.evidence.get("near"),
        around=around,
    )
    counts = [None if each is None else each.n_prompt_tokens for each in facts]
    digests = [None if each is None else each.prompt_digest for each in facts]
    sides = (
        (made.baseline, pair.repeat_baseline, facts[0], row.score_baseline),
        (made.candidate, pair.repeat_candidate, facts[1], row.score_candidate),
    )
    ours, theirs = (_write_side(made, *side, pair) for side in sides)
    return TracePair.from_record(
        parting or Divergence(),
        **laid,
        case=row.case,
        baseline=ours,
        candidate=theirs,
        cause=row.cause,
        numeric=row.numeric,
        text=row.text,
        evidence=row.evidence,
        provenance=(),
        moved=(),
        url="",
        leak=None,
        at_flip=(),
        at_flip_text="",
        changed=made.list_prompt_changes(pair.flip.case_index),
        treatment=made.terms.treatment,
        pair_by=made.terms.pair_by,
        messages=tuple(map(_cut_message, case.messages)),
        target=case.target,
        prompts=PairPrompts(
            n_baseline=counts[0],
            n_candidate=counts[1],
            are_same=None in digests or digests[0] == digests[1],  # the messages are: cases are paired by them
            pieces=(),
        ),
    )


def list_facts(made: LogComparison) -> list[Moved]:
    """Return the serving stacks and settings of both sides as text, and every setting that differs.

    None: not in the log.
    """
    runs, comparison = (made.baseline, made.candidate), made.comparison
    sides = [getattr(comparison.sides, name) for name in SIDES]
    are_scored = [any(repeat.score is not None for repeat in side.repeats) for side in sides]
    settings: dict[str, list[str | None]] = {
        "model": [side.model if side.model != UNNAMED else None for side in sides],
        "served by": [_name_stacks([bucket.fingerprint.label for bucket in side.buckets]) for side in sides],
        "settings": [_name_settings(run.profile.settings.get("sampling", {})) for run in runs],
        "scorer": [_name_scorer(run) if is_scored else None for run, is_scored in zip(runs, are_scored, strict=True)],
        "repeats": [str(len(side.repeats)) for side in sides],
        "tokens, logprobs": [_count_tokens(run) for run in runs],
    }
    facts = [Moved(field=name, baseline=ours, candidate=theirs) for name, (ours, theirs) in settings.items()]
    known = ("model", "source.system_fingerprint", "sampling")
    others = [each.as_field for each in comparison.moved if not each.field.startswith(known)]
    for field in others:
        ours, theirs = render_sides(field)
        facts.append(Moved(field=render_field_name(field.field), baseline=ours, candidate=theirs))
    return [fact for fact in facts if not fact.is_unknown]


def _name_stacks(labels: Sequence[str]) -> str | None:
    return ", ".join(labels) if any(label != UNKNOWN_STACK for label in labels) else None


def _name_settings(sampling: Mapping[str, Any]) -> str | None:
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in sampling.items()) or None


def _name_scorer(run: LogRun) -> str:
    """Return the suite's own scorer: its kind, or which tool's scores are taken over."""
    default = run.suite_version.scorer.spec["default"]
    return str(default.get("source") or default["kind"])


def _count_tokens(run: LogRun) -> str:
    there = [each for repeat in run.whole for each in repeat.answers if each is not None and not each.error_code]
    traces = [each.place for each in there if each.place is not None]
    top = max((trace.k for trace in traces), default=0)
    return f"{len(traces):,} of {len(there):,}" + (f", top {top}" if top else "")


def cut_pair_texts(pair: TracePair) -> CutTexts:
    """Return both texts, long ones from a little before they part."""
    texts = pair.baseline.text, pair.candidate.text
    start = max((pair.text_position or 0) - BEFORE, 0)
    if max(map(len, texts)) <= MAX_TEXT:
        start = 0
    shown = [text[start : start + MAX_TEXT] for text in texts]
    left_out = [len(text) - len(part) for text, part in zip(texts, shown, strict=True)]
    at = None if pair.text_position is None else pair.text_position - start
    return CutTexts((shown[0], shown[1]), at, (left_out[0], left_out[1]))


def _find_chances(made: LogComparison) -> dict[int, tuple[float | None, bool]]:
    """Return how likely chance moves each judged case as far, and whether it is beyond chance."""
    cases: dict[str, Sequence[Any]] = made.report.cases["cases"]
    return {case: (chance, is_beyond) for rows in cases.values() for case, _, _, chance, is_beyond in rows}


def _name_tokens(made: LogComparison, row: ComparedCase, pair: DifferingPair, part: str) -> tuple[str, str]:
    if row.flip_position is not None:
        return row.token_baseline, row.token_candidate
    ours, theirs = made.answers(pair)
    if part == "same_text" or ours is None or theirs is None or ours.text == theirs.text:
        return "", ""
    cut = cut_texts(ours.text, theirs.text)
    return cut[0].token, cut[1].token


def _words(made: LogComparison, vocabulary_id: int | None) -> Vocabulary | None:
    return None if vocabulary_id is None else made.store.words.read(vocabulary_id)


def _write_side(
    made: LogComparison, run: LogRun, repeat: int, facts: ResponseFacts | None, score: float | None, pair: DifferingPair
) -> PairSide:
    place = int(np.searchsorted(made.cases[0], pair.flip.case_index))
    case = int(made.cases[0 if run is made.baseline else 1][place])
    served = int(run.repeats[repeat - 1].columns.buckets[case])
    bucket = None if served == NO_BUCKET else made.store.buckets[served]
    code = "not_in_log" if facts is None else facts.error_code
    trace = None if facts is None else facts.place
    return PairSide(
        run=str(run.pk),
        repeat=repeat,
        text="" if facts is None else facts.text,
        reasoning=None,
        n_reasoning_tokens=None if facts is None else facts.n_reasoning_tokens,
        is_truncated=None,
        finish_reason=None if facts is None else facts.finish_reason or None,
        ending=None if facts is None else facts.ending or None,
        error=ResponseError(code=code, detail="") if code else None,
        reason=None,
        trace_digest=None,
        score=score,
        n_tokens=None if trace is None else len(trace),
        fingerprint=bucket.fingerprint.digest if bucket else None,
        batch_class=bucket.batch_class if bucket else None,
        n_repeats=len(run.repeats),
        model=bucket.model.name if bucket else run.model_name,
        is_vouched=True,
    )


def _cut_message(message: Mapping[str, Any]) -> dict[str, str]:
    """Return a message of a prompt as text, a long one without its end."""
    text, others = message.get("content"), {name: value for name, value in message.items() if name != "role"}
    if isinstance(text, list):
        text = prompt_text(text)
    if not isinstance(text, str) or len(others) > 1:
        text = json.dumps(others, ensure_ascii=False)
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]} … {len(text) - MAX_TEXT:,} more characters"
    return {"role": str(message["role"]), "content": text}
