"""Judge whether all workers of a pool give equal bits, now and since the last audit (docs/probes.md).

Cases are decoded greedily by each worker, one at a time. Within one bucket any difference is an incident, with who gave
it, when, and the first token.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from evalboard.core.probes.answers import AnsweredCall, certify, count_shared, make_incomplete_finding, read_answers
from evalboard.core.probes.call import ProbeExchange, ProbeResult

MAX_INCIDENTS = 50


@dataclass(frozen=True, slots=True)
class _ComparedAnswer:
    """An answer and the one it is compared with. is_earlier: that is from the previous audit."""

    answered: AnsweredCall
    against: AnsweredCall
    is_earlier: bool

    @property
    def is_alike(self) -> bool:
        return _bits(self.answered) == _bits(self.against)


def judge_audit_probe(calls: Iterable[ProbeExchange], earlier: Iterable[ProbeExchange] = ()) -> ProbeResult:
    """Judge the answers of all workers: identical, differs, stacks_differ, nothing_held or incomplete.

    earlier: the calls of the audit before that was asked the same. What a bucket gave there is what it must give now;
    where it gave nothing there, what most of its workers give now. Answers of several buckets are held against each
    other too, but these are other stacks.
    """
    answers = read_answers(call for call in calls if call.was_sent)
    if not answers.is_enough:
        return make_incomplete_finding(answers)
    before = _by_place(read_answers(call for call in earlier if call.was_sent).answered)
    now = _by_place(answers.answered)
    same = [each for place, group in now.items() for each in _hold(group, before.get(place, ()))]
    across = list(_hold_stacks(now))
    odd = [each for each in (*same, *across) if not each.is_alike]
    n_incidents = sum(not each.is_alike for each in same)
    n_held = len(same) + len(across)
    numbers = {
        **answers.counts,
        "compared": answers.unit,
        "n_cases": len({prompt for _, prompt in now}),
        "n_stacks": len({bucket for bucket, _ in now}),
        "n_held": n_held,
        "n_held_earlier": sum(each.is_earlier for each in same),
        "n_incidents": n_incidents,
        "n_across": len(odd) - n_incidents,
        "certificate": certify(n_held) if n_held and not odd else None,
        "workers": _count_by_worker(answers.answered, odd),
        "incidents": [_incident(each) for each in odd[:MAX_INCIDENTS]],
    }
    return ProbeResult(_state(numbers), numbers)


def _by_place(answered: Iterable[AnsweredCall]) -> dict[tuple[int, int], list[AnsweredCall]]:
    """Return the answers by bucket and prompt, those of a lower worker first."""
    ordered = sorted(answered, key=lambda each: (*_place(each), each.call.worker or 0))
    return {place: list(group) for place, group in groupby(ordered, key=_place)}


def _place(each: AnsweredCall) -> tuple[int, int]:
    return each.call.bucket or 0, each.call.prompt


def _bits(each: AnsweredCall) -> tuple[Any, ...]:
    return each.answer, each.call.trace_digest


def _commonest(group: Sequence[AnsweredCall]) -> AnsweredCall:
    """Return an answer that most agree with; of equally common ones that of the lowest worker."""
    counts = Counter(map(_bits, group))
    return max(group, key=lambda each: counts[_bits(each)])  # the first of the largest


def _hold(group: Sequence[AnsweredCall], before: Sequence[AnsweredCall]) -> list[_ComparedAnswer]:
    """Compare a bucket's answers to a case with the previous audit, or with the most common answer."""
    if before:
        return [_ComparedAnswer(each, _commonest(before), is_earlier=True) for each in group]
    against = _commonest(group)
    return [_ComparedAnswer(each, against, is_earlier=False) for each in group if each is not against]


def _hold_stacks(now: Mapping[tuple[int, int], Sequence[AnsweredCall]]) -> Iterable[_ComparedAnswer]:
    """Compare the most common answer of every further bucket with that of the first bucket."""
    by_prompt: dict[int, list[AnsweredCall]] = {}
    for (_, prompt), group in now.items():
        by_prompt.setdefault(prompt, []).append(_commonest(group))
    for first, *others in by_prompt.values():
        yield from (_ComparedAnswer(each, first, is_earlier=False) for each in others)


def _incident(pair: _ComparedAnswer) -> dict[str, Any]:
    """Return who gave which token first, when, and whose other answer it was compared with.

    position: of the first token that differs, else of the first logprob; None where only alternatives do.
    """
    ours, theirs = pair.answered, pair.against
    is_text = ours.answer != theirs.answer
    both = (ours.answer, theirs.answer) if is_text else (ours.call.logprobs, theirs.call.logprobs)
    position = count_shared(*both)
    return {
        "prompt": ours.call.prompt,
        **_who(ours.call),
        "is_same_stack": ours.call.bucket == theirs.call.bucket,
        "against": {**_who(theirs.call), "is_earlier": pair.is_earlier},
        "what": "tokens" if is_text else "bits",
        "position": None if both[0] == both[1] else position,
        "token": _token(ours, position),
        "token_against": _token(theirs, position),
    }


def _who(call: ProbeExchange) -> dict[str, Any]:
    return {"worker": call.worker, "at": call.at or None, "bucket": call.bucket, "fingerprint": call.fingerprint}


def _token(each: AnsweredCall, position: int) -> int | None:
    """Return the token's id; None where the answer has ended, or only characters are known."""
    ids = each.call.token_ids
    return ids[position] if position < len(ids) else None


def _count_by_worker(answered: Iterable[AnsweredCall], odd: Iterable[_ComparedAnswer]) -> list[dict[str, Any]]:
    n_odd = Counter(each.answered.call.worker for each in odd)
    served = Counter((each.call.worker, each.call.bucket, each.call.fingerprint) for each in answered)
    return [
        {"worker": worker, "bucket": bucket, "fingerprint": fingerprint, "n_answered": n, "n_incidents": n_odd[worker]}
        for (worker, bucket, fingerprint), n in sorted(served.items(), key=lambda item: str(item[0]))
    ]


def _state(numbers: Mapping[str, Any]) -> str:
    if numbers["n_incidents"]:
        return "differs"
    if numbers["n_across"]:
        return "stacks_differ"
    return "identical" if numbers["n_held"] else "nothing_held"
