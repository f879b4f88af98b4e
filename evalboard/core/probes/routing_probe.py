"""Judge which backends answer behind an endpoint, by the fingerprints of calls to its workers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalboard.core.probes.answers import certify, make_incomplete_finding, read_answers
from evalboard.core.probes.call import ProbeExchange, ProbeResult


def judge_routing_probe(calls: Iterable[ProbeExchange], *, last_fingerprint: str | None = None) -> ProbeResult:
    """Judge how many serving stacks answered: one, several, rotated, unknown or incomplete.

    rotated: all from one, and the last one known was another. An unknown fingerprint ("") is never equal to another,
    so with one of them it is several or unknown. Workers without any answer are counted, and decide nothing. Of a
    server of others what it says of its backend stands in for the fingerprint.
    """
    calls = tuple(calls)
    answers = read_answers(calls)
    if not answers.is_enough:
        return make_incomplete_finding(answers)
    answered = [each.call for each in answers.answered]
    workers = _by_worker(calls)
    numbers = {
        **answers.counts,
        "n_unknown": sum(not _stack(call) for call in answered),
        "n_workers": sum(row["n_answered"] > 0 for row in workers),
        "n_workers_silent": sum(row["n_answered"] == 0 for row in workers),
        "n_distinct_answers": len({each.answer for each in answers.answered}),
        "certificate": certify(len(answered)),
        "last_fingerprint": last_fingerprint,
        **({"is_remote": True} if any(call.is_remote for call in answered) else {}),
        "fingerprints": _by_fingerprint(answered),
        "workers": workers,
    }
    return ProbeResult(_state(numbers), numbers)


def _stack(call: ProbeExchange) -> str:
    return call.fingerprint or call.backend


def _by_fingerprint(answered: Sequence[ProbeExchange]) -> list[dict[str, Any]]:
    """Count calls by fingerprint, the most common first; None if unknown."""
    counts = Counter(map(_stack, answered))
    return [
        {
            "fingerprint": fingerprint or None,
            "n": n,
            "share": n / len(answered),
            "workers": sorted({call.worker for call in answered if _stack(call) == fingerprint}, key=_order),
        }
        for fingerprint, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _by_worker(calls: Sequence[ProbeExchange]) -> list[dict[str, Any]]:
    rows = []
    for worker in sorted({call.worker for call in calls}, key=_order):
        theirs = [call for call in calls if call.worker == worker]
        answered = [call for call in theirs if not call.error and not call.marks]
        counts = Counter(map(_stack, answered))
        shares = [
            {"fingerprint": each or None, "n": n, "share": n / len(answered)} for each, n in sorted(counts.items())
        ]
        n_failed = sum(bool(call.error) for call in theirs)
        rows.append({"worker": worker, "n_answered": len(answered), "n_failed": n_failed, "fingerprints": shares})
    return rows


def _state(numbers: Mapping[str, Any]) -> str:
    known = [row["fingerprint"] for row in numbers["fingerprints"] if row["fingerprint"] is not None]
    if len(known) > 1:
        return "several"
    if numbers["n_unknown"]:
        return "unknown"
    return "one" if numbers["last_fingerprint"] in (None, "", known[0]) else "rotated"


def _order(worker: int | None) -> tuple[bool, int]:
    return worker is None, worker or 0
