"""Samples: how a run's repeats are sampled, and the seed of each call (docs/profiles.md).

At temperature 0 our own engine samples nothing, and the seed changes nothing. Above 0 a repeat is a sample from the
model, as long as no other repeat of the case was sent the same seed. An external server may refuse or drop the
temperature and sample all the same, so each call to one has a seed of its own at any temperature.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from evalboard.contract.run import Draws
from evalboard.core import digest

MAX_SEED = 2**63 - 1
SEED_BITS = 63
EXTERNAL_SEED_BITS = 31  # Gemini takes an int32, and gateways in JavaScript round whole numbers above 2**53
# Where one has another value, tokens are drawn from a distribution that the model's own logprobs are not of.
UNSHAPED: Mapping[str, tuple[Any, ...]] = {
    "temperature": (1,),
    "top_p": (1,),
    "top_k": (0, -1),  # -1 is how logs say it
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "min_tokens": (0,),
}


def read_temperature(sampling: Mapping[str, Any]) -> float | None:
    """Return the requested temperature, None if it is not known."""
    value = sampling.get("temperature")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_sampled(sampling: Mapping[str, Any]) -> bool:
    """Tell whether the temperature is above 0; an unknown one counts as 0."""
    return (read_temperature(sampling) or 0.0) > 0


def has_call_seeds(sampling: Mapping[str, Any], *, is_external: bool) -> bool:
    """Return whether each call has its own seed: on external servers, and at temperatures above 0."""
    return is_external or is_sampled(sampling)


def call_seed(
    sampling: Mapping[str, Any], *, run_seed: int | None, repeat: int, case_id: str, is_external: bool = False
) -> int:
    """Return the seed of one call: its own if `has_call_seeds`, else the profile's.

    Its own seed is the first 63 bits of SHA-256 over the canonical JSON of [run_seed, repeat, case_id], 31 bits for an
    external server. Order, shard and attempt do not change it, and every run of that seed has it. `sampling` is
    complete. Runs made before runs had seeds (run_seed None) send the profile's.
    """
    if run_seed is None or not has_call_seeds(sampling, is_external=is_external):
        return int(sampling["seed"])
    content = digest.short_digest(digest.canonical_json([run_seed, repeat, case_id]))
    return int.from_bytes(content[:8]) >> (64 - (EXTERNAL_SEED_BITS if is_external else SEED_BITS))


def is_one_draw(sampling: Mapping[str, Any], sent: Iterable[tuple[Hashable, int | None, str]]) -> bool:
    """Tell whether repeats of a log are one sample, by (case, sent seed or None, call or "") per response.

    Two calls for a case with one seed are enough: how far such repeats scatter says nothing of the sampler. Calls
    without a seed are draws of their own, and so are the several answers to one call.
    """
    if not is_sampled(sampling):
        return False
    calls: dict[tuple[Hashable, int], str] = {}
    for case, seed, call in sent:
        if seed is None:
            continue
        if (before := calls.get((case, seed))) is not None and (before != call or not call):
            return True
        calls[case, seed] = call
    return False


def have_same_seeds(ours: Draws, theirs: Draws) -> bool:
    """Tell whether each repeat of one run was sent the same seeds as the other's, for pairing repeats.

    From provenance alone. That suite version and sampling are the same is for the caller to know. An external server's
    seeds are shorter, so they are never those of a run on our own engine.
    """
    are_sampled = ours.is_sampled and theirs.is_sampled and not (ours.is_one or theirs.is_one)
    sent, sent_too = ((each.seed, each.is_external, each.repeats) for each in (ours, theirs))
    return are_sampled and ours.seed is not None and sent == sent_too
