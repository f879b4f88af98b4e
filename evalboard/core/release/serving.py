"""Warn of how a gate's runs were decoded (docs/releases.md). None of these changes a verdict."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalboard.core.release.gate import VerdictLine
from evalboard.core.trace import NOTABLE, Ending

MIXED = "mixed"
SCORED_ENDINGS = tuple(ending for ending in NOTABLE if ending is not Ending.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedSide:
    """How the judged repeats of one run were decoded. n_left_out: the other repeats.

    n_unvouched, n_truncated: responses. n_by_ending: answers that ended notably, of n_answers that have a score.
    n_filtered: prompts that the provider's filter refused here alone; n_filtered_on_both: on both sides.
    not_greedy: answers to greedy calls that hold a token below the most likely one, of how many; None: too few.
    n_processes: engine processes. broken_pins: names, each once.
    uncertified: hosts that decoded under batch-invariant kernels without a certificate.
    strays, unsteady: as `RunRecord` has them. is_log: another tool's log. is_reported: a log or an external server said
    who answered. is_read: read from a log, also from an export of ours.
    buckets: [share, backend, batch class, points] of each, points None where it has no score.
    """

    run: int
    n_repeats: int
    n_left_out: int
    n_unvouched: int
    n_truncated: int
    n_by_ending: Mapping[str, int] = field(default_factory=dict)
    n_processes: int
    broken_pins: tuple[str, ...]
    uncertified: tuple[str, ...]
    strays: Sequence[Mapping[str, Any]]
    unsteady: Sequence[Mapping[str, Any]]
    is_log: bool
    is_reported: bool
    is_read: bool
    buckets: Sequence[Sequence[Any]] = ()
    n_answers: int = 0
    n_filtered: int = 0
    n_filtered_on_both: int = 0
    not_greedy: tuple[int, int] | None = None


def list_serving_warnings(baseline: DecodedSide, candidate: DecodedSide) -> tuple[VerdictLine, ...]:
    """Return the warnings of both sides, the gravest first; each names its `run` and `side`."""
    return tuple(
        VerdictLine(code, {"run": side.run, "side": name, **facts})
        for name, side, other in (("baseline", baseline, candidate), ("candidate", candidate, baseline))
        for code, facts in (*_warn_of_endings(side, other, is_first=side is baseline), *_warn_of_side(side))
    )


def _warn_of_endings(side: DecodedSide, other: DecodedSide, *, is_first: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield endings that a side has more of, and its refused prompts; once if on both sides."""
    for ending in SCORED_ENDINGS:
        n, n_other = side.n_by_ending.get(ending, 0), other.n_by_ending.get(ending, 0)
        if n * other.n_answers > n_other * side.n_answers:
            totals = {"total": side.n_answers, "n_other": n_other, "total_other": other.n_answers}
            yield "endings_differ", {"ending": str(ending), "n": n, **totals}
    if side.n_filtered:
        yield "prompts_filtered", {"n": side.n_filtered, "is_both": False}
    if side.n_filtered_on_both and not is_first:
        yield "prompts_filtered", {"n": side.n_filtered_on_both, "is_both": True}


def _warn_of_side(side: DecodedSide) -> Iterator[tuple[str, dict[str, Any]]]:
    if side.broken_pins:
        yield "pins_broken", {"pins": list(side.broken_pins)}
    if len(side.buckets) > 1:
        yield "several_buckets", {"buckets": list(side.buckets)}
    if side.n_unvouched:
        yield "unvouched", {"n": side.n_unvouched}
    if side.n_truncated:
        yield "truncated", {"n": side.n_truncated, "is_log": side.is_read}
    if side.not_greedy is not None:
        yield "not_greedy", dict(zip(("n", "total"), side.not_greedy, strict=True))
    for strays in side.strays:
        yield "two_computations", {"n": strays["n_strays"], "distance": strays["distance"]}
    for bucket in side.unsteady:
        yield "unsteady", {name: bucket[name] for name in ("batch_class", "n_cases", "n_apart")}
    if side.uncertified:
        yield "uncertified", {"hosts": list(side.uncertified)}
    if side.is_log:
        yield "imported", {}
    elif side.is_reported:
        yield "reported", {}
    if any(batch_class == MIXED for _, _, batch_class, _ in side.buckets):
        yield "rough_profile", {}
    if side.n_left_out:
        yield "repeats_left_out", {"n": side.n_left_out}
    if side.n_repeats < 2:
        yield "noise_unmeasured", {}
    elif side.n_processes == 1 and not side.is_reported:
        yield "one_process", {"n_repeats": side.n_repeats}
