"""Say whether logprobs of two sides agree, in a sentence."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.stats import MIN_CASES_JUDGED
from evalboard.wording.messages import Messages, speak, write
from evalboard.wording.numbers import counted, listed, nats_rounded

Facts = Mapping[str, Any]
UNLIKELY = 0.05  # of a chance: below it, "the logprobs agree" would say too much


def write_computation(facts: Facts) -> str:
    """Write a comparison's `computation`: {"is_one_bucket"} and the fields of `OneComputation`."""
    claim = ANSWERS.claim(facts["answer"], facts)
    strays = {side: n for side in ("baseline", "candidate") if (n := facts.get(f"n_strays_{side}"))}
    if not strays:
        return speak([claim])
    who = f"The {next(iter(strays))} has" if len(strays) == 1 else "Both sides have"
    n = listed([f"{n:,}" for n in strays.values()])
    first = ANSWERS.claim("strays", who=who, n=n)
    return speak([first, claim._replace(text=f"{claim.text[0].lower()}{claim.text[1:]}")])


def _two(facts: Facts) -> str:
    if facts["is_steady"]:
        return write(
            "The sides differ in {n_apart:,} of {n_cases:case}, though repeats of each side agree to the bit. "
            "Something changed that no fingerprint shows.",
            **facts,
        )
    return write(
        "Over {over} logprobs differ by {shift:nats_rounded}, {beyond} (p < 0.001): {same}different weights or "
        "kernels.",
        over=_over(facts),
        shift=facts["shift"],
        beyond="more than repeats do" if facts["noise"] else "far beyond rounding",
        same="the same fingerprint, but " if facts["is_one_bucket"] else "",
    )


def _apart(facts: Facts) -> str:
    is_small = facts["shift"] <= facts["floor"]
    judged = "within what rounding may do" if is_small else "more than rounding may do"
    end = "Other kernels, batch sizes or caches can do that, and so can other weights."
    if facts["is_one_bucket"]:
        end = (
            "Different batch sizes or a cache on one side can cause that. If neither was there, the weights or the "
            "build changed though the fingerprint did not."
        )
    return write(
        "Logprobs differ by {shift:nats_rounded} in {n_apart:,} of {n_cases:case}, {judged} ({floor:nats_rounded}). "
        "Repeats of each side agree to the bit. {end}",
        **facts,
        judged=judged,
        end=end,
    )


def _one(facts: Facts) -> str:
    if facts["is_steady"]:
        return write("Logprobs agree to the bit in {n_cases:case}, between both sides and between repeats.", **facts)
    if facts["chance"] is None:
        return write(
            "Logprobs agree to the bit in {n_cases:case}. {n_differing:other case} {n_differing:differs|differ}, too "
            "few to judge ({least} needed).",
            **facts,
            least=MIN_CASES_JUDGED,
        )
    if facts["chance"] < UNLIKELY:
        return _unsettled(facts)
    if facts["n_positions"] and not facts["n_apart"]:
        return write("Logprobs agree to the bit at all {n_positions:,} positions of {n_cases:case}.", **facts)
    where = "Where both sides wrote the same tokens, logprobs"
    if facts["n_positions"]:
        where = f"At {_over(facts)}, logprobs"
    noise = facts["noise"]
    alike = "agree within rounding"
    if noise:
        alike = f"differ as little as between repeats ({nats_rounded(noise)} on average)"
    return f"{where} {alike}.{_unexplained(facts)}{_known_for(facts)}"


def _unexplained(facts: Facts) -> str:
    n = facts.get("n_unexplained")
    return f" In {counted(n, 'case')} the logprobs agree, and yet another token was chosen." if n else ""


def _known_for(facts: Facts) -> str:
    n, n_differing = facts["n_cases"], facts.get("n_differing") or 0
    return f" This covers only {n:,} of the {n_differing:,} cases that differ." if 2 * n < n_differing else ""


def _unsettled(facts: Facts) -> str:
    return write(
        "Not decided: over {over} logprobs differ by {shift:nats_rounded}, more than {noise}. Chance alone gives that "
        "in 1 of {one_in:,.0f} comparisons.",
        over=_over(facts),
        shift=facts["shift"],
        noise="repeats do" if facts["noise"] else "rounding may do",
        one_in=1 / facts["chance"],
    )


def _over(facts: Facts) -> str:
    cases = counted(facts["n_cases"], "case")
    return cases if facts["n_positions"] is None else f"{facts['n_positions']:,} positions of {cases}"


def _unknown(facts: Facts) -> str:
    n = facts["n_cases"]
    judged = f"Only {counted(n, 'case')}" if n else "No case"
    return (
        f"{judged} can show whether logprobs are equal; {MIN_CASES_JUDGED} are needed. A case counts if each side has "
        "logprobs of 3 repeats that are not copies. If they agree to the bit, 2 are enough."
    )


ANSWERS = Messages(
    "computation",
    {
        ("computation", "asserts"): {"two": _two},
        ("computation", "allows"): {"apart": _apart},
        ("computation", "denies"): {"one": _one},
        ("computation", "unknown"): {"unknown": _unknown},
        ("backends", "asserts"): {"strays": "{who} outlier responses ({n}). Without them:"},
    },
)
