"""Say whether logprobs of two sides agree, in a sentence."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.stats import MIN_CASES_JUDGED
from evalboard.wording.numbers import counted, fixed, listed, nats_rounded

Facts = Mapping[str, Any]
UNLIKELY = 0.05  # of a chance: below it, "no sign" would say too much


def write_computation(facts: Facts) -> str:
    """Write a comparison's `computation`: {"is_one_bucket"} and the fields of `OneComputation`."""
    text = _WRITE[facts["answer"]](facts)
    strays = {side: n for side in ("baseline", "candidate") if (n := facts.get(f"n_strays_{side}"))}
    if not strays:
        return text
    who = f"The {next(iter(strays))} was" if len(strays) == 1 else "Both sides were"
    n = listed([counted(n, "response") for n in strays.values()])
    return f"{who} answered by two builds ({n}). Without them: {text[0].lower()}{text[1:]}"


def _two(facts: Facts) -> str:
    if facts["is_steady"]:
        return (
            "Something that no fingerprint shows has changed: repeats of either side are the same to the bit, "
            f"and the sides differ in {facts['n_apart']:,} of {counted(facts['n_cases'], 'case')}."
        )
    opening = "Two computations under one fingerprint" if facts["is_one_bucket"] else "Not the same computation"
    noise = facts["noise"]
    times = f", {fixed(facts['shift'] / noise, 1)} times the noise of repeats ({nats_rounded(noise)})" if noise else ""
    return (
        f"{opening}: over {_over(facts)} the sides lie further apart than repeats of one side, by "
        f"{nats_rounded(facts['shift'])}{times}. Fewer than 1 in 1,000 comparisons of one computation look so."
    )


def _apart(facts: Facts) -> str:
    cases, assumed = counted(facts["n_cases"], "case"), nats_rounded(facts["floor"])
    within = f"within either side the repeats of all {cases} are the same to the bit"
    apart = f"in {facts['n_apart']:,} of them the sides lie {nats_rounded(facts['shift'])} apart"
    if not facts["is_one_bucket"]:
        how = ", by no more than rounding may" if facts["shift"] <= facts["floor"] else ""
        return (
            f"The sides differ{how}: {within}, and {apart} (rounding is assumed to do up to {assumed}). "
            "Other kernels, batches of another size or a cache can do that, and so can other weights."
        )
    return (
        f"The sides differ under one fingerprint: {within}, but {apart}. "
        f"Batches of another size can do that (up to {assumed} is assumed), and so can a cache that answers repeats. "
        "If it is neither, the weights or the build have changed."
    )


def _one(facts: Facts) -> str:
    if facts["is_steady"]:
        return (
            "One computation, as far as can be seen: repeats of either side and the sides themselves are the same to "
            f"the bit in {counted(facts['n_cases'], 'case')}."
        )
    if facts["chance"] is None:
        n, equal = facts["n_differing"], counted(facts["n_cases"], "case")
        judged = f"it takes {MIN_CASES_JUDGED} to judge {'it' if n == 1 else 'these'}"
        others = f"They differ in {counted(n, 'other')}, and {judged}."
        return f"Logprobs agree: both sides are the same to the bit in {equal}. {others}"
    if facts["chance"] < UNLIKELY:
        return _unsettled(facts)
    if facts["n_positions"] and not facts["n_apart"]:
        return (
            "One computation, as far as can be seen: both stacks give the same bits at all "
            f"{facts['n_positions']:,} positions of {counted(facts['n_cases'], 'case')}."
        )
    where = "Where both sides wrote the same tokens, their logprobs"
    if facts["n_positions"]:
        where = f"At {_over(facts)} their logprobs"
    noise = facts["noise"]
    agree = (
        f"agree as closely as repeats of one side ({nats_rounded(noise)})"
        if noise
        else "agree as closely as rounding is assumed to leave them; repeats of either side are the same to the bit"
    )
    return f"{where} {agree}{_unexplained(facts)}.{_known_for(facts)}"


def _unexplained(facts: Facts) -> str:
    n = facts.get("n_unexplained")
    return f", but in {counted(n, 'case')} a token was chosen that these logprobs do not explain" if n else ""


def _known_for(facts: Facts) -> str:
    n, n_differing = facts["n_cases"], facts.get("n_differing") or 0
    return f" This is known for only {n:,} of the {n_differing:,} cases that differ." if 2 * n < n_differing else ""


def _unsettled(facts: Facts) -> str:
    noise = "repeats of one side" if facts["noise"] else "rounding is assumed to move logprobs"
    return (
        f"Not settled: over {_over(facts, ' with any difference')} the sides lie further apart than "
        f"{noise}, by {nats_rounded(facts['shift'])}. About 1 in {1 / facts['chance']:,.0f} comparisons of one "
        "computation look so; fewer than 1 in 1,000 would say that they are two."
    )


def _over(facts: Facts, which: str = "") -> str:
    cases = counted(facts["n_cases"], "case")
    if facts["n_positions"] is None:
        return f"{cases}{which}"
    return f"{facts['n_positions']:,} positions of {cases}, which both stacks have read,"


def _unknown(facts: Facts) -> str:
    n = facts["n_cases"]
    judged = f"only {counted(n, 'case')}" if n else "no case"
    return (
        f"Whether both sides are one computation is not known: {judged} can be judged, "
        f"and it takes {MIN_CASES_JUDGED}. A case can be "
        "judged where logprobs of its responses differ and each side has 3 repeats of it that are not copies, or "
        "repeats that are all the same to the bit."
    )


_WRITE = {"two": _two, "apart": _apart, "one": _one, "unknown": _unknown}
