"""Who answers behind an endpoint: the fingerprints of calls to each of its workers (docs/probes.md)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalboard.core.probe_answers import failed_words, incomplete, read
from evalboard.core.probe_call import Call, Finding
from evalboard.core.verdict_words import counted, listed

UNSEEN = 0.05  # a second backend with a larger share would have answered one of so many calls, 95 times in 100
SHOWN = 12  # characters of a fingerprint in a sentence
MOST_SHOWN = 4


def find(calls: Iterable[Call], *, last_fingerprint: str | None = None) -> Finding:
    """How many serving stacks answered: one, several, rotated, unknown or incomplete.

    rotated: all from one, and the last one known was another. An unknown fingerprint ("") is never equal to another,
    so with one of them it is several or unknown. Workers without any answer are counted, and decide nothing.
    """
    calls = tuple(calls)
    answers = read(calls)
    if not answers.is_enough:
        return incomplete(answers, "half of the calls")
    answered = [each.call for each in answers.answered]
    workers = _by_worker(calls)
    numbers = {
        **answers.counts,
        "n_unknown": sum(not call.fingerprint for call in answered),
        "n_workers": sum(row["n_answered"] > 0 for row in workers),
        "n_workers_silent": sum(row["n_answered"] == 0 for row in workers),
        "n_distinct_answers": len({each.answer for each in answers.answered}),
        "certificate": 1 - UNSEEN ** (1 / len(answered)),
        "last_fingerprint": last_fingerprint,
        "fingerprints": _by_fingerprint(answered),
        "workers": workers,
    }
    state = _state(numbers)
    return Finding(state, _SENTENCES[state](numbers) + _silent(numbers) + failed_words([answers]), numbers)


def _by_fingerprint(answered: Sequence[Call]) -> list[dict[str, Any]]:
    """The commonest first; fingerprint None for the calls of which it is not known."""
    counts = Counter(call.fingerprint for call in answered)
    return [
        {
            "fingerprint": fingerprint or None,
            "n": n,
            "share": n / len(answered),
            "workers": sorted({call.worker for call in answered if call.fingerprint == fingerprint}, key=_order),
        }
        for fingerprint, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def _by_worker(calls: Sequence[Call]) -> list[dict[str, Any]]:
    rows = []
    for worker in sorted({call.worker for call in calls}, key=_order):
        theirs = [call for call in calls if call.worker == worker]
        answered = [call for call in theirs if not call.error]
        found = Counter(call.fingerprint for call in answered)
        shares = [
            {"fingerprint": each or None, "n": n, "share": n / len(answered)} for each, n in sorted(found.items())
        ]
        n_failed = len(theirs) - len(answered)
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


def _answered(numbers: Mapping[str, Any]) -> str:
    n = numbers["n_calls"] - numbers["n_failed"]
    return f"{counted(n, 'answer')} of {counted(numbers['n_workers'], 'worker')}"


def _one(numbers: Mapping[str, Any]) -> str:
    fingerprint = numbers["fingerprints"][0]["fingerprint"][:SHOWN]
    since = ", as the last run was" if numbers["last_fingerprint"] else ""
    text = f"One serving stack: {_answered(numbers)} came from fingerprint {fingerprint}{since}."
    n, share = numbers["n_calls"] - numbers["n_failed"], f"{100 * numbers['certificate']:.0f} %"
    verb = "rules" if n == 1 else "rule"
    return f"{text} {counted(n, 'answer')} {verb} out a second backend with more than {share}, 95 % sure."


def _rotated(numbers: Mapping[str, Any]) -> str:
    now, last = numbers["fingerprints"][0]["fingerprint"][:SHOWN], numbers["last_fingerprint"][:SHOWN]
    return (
        f"The serving stack has been rotated: {_answered(numbers)} came from fingerprint {now}, and the last one known "
        f"was {last}. Baselines of the old one have expired."
    )


def _several(numbers: Mapping[str, Any]) -> str:
    known = [row for row in numbers["fingerprints"] if row["fingerprint"] is not None]
    parts = [f"{row['fingerprint'][:SHOWN]} ({100 * row['share']:.0f} %)" for row in known[:MOST_SHOWN]]
    parts += [f"{len(known) - MOST_SHOWN} more"] if len(known) > MOST_SHOWN else []
    parts += [f"unknown ones ({numbers['n_unknown']})"] if numbers["n_unknown"] else []
    found = f"{_answered(numbers)} came from {listed(parts)}"
    return f"{len(known)} serving stacks answer: {found}. A run spread over them is no single measurement."


def _unknown(numbers: Mapping[str, Any]) -> str:
    found = f"{numbers['n_unknown']} of {_answered(numbers)} came without a fingerprint"
    return f"Who answers is not known: {found}, and unknown is never equal."


def _silent(numbers: Mapping[str, Any]) -> str:
    n = numbers["n_workers_silent"]
    return f" {counted(n, 'worker')} gave no answer." if n else ""


_SENTENCES = {"one": _one, "rotated": _rotated, "several": _several, "unknown": _unknown}
