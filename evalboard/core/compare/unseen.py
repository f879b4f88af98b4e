"""Find causes that no pair could show, because their evidence is unknown on a side."""

from collections.abc import Iterator

from evalboard.core.compare.cause import CAUSES
from evalboard.core.compare.sides import Side

BY_LOGPROBS = ("leak", "silent_change", "seed_ignored", "sampler_fault", "drift_only", "near_tie", "larger_shift")


def find_unseen(
    ours: Side, theirs: Side, *, n_traced: int, n_hidden: int, differs: bool, is_scored: bool, is_noise_zero: bool
) -> list[str]:
    """Return the causes that no pair could have shown, in the order of CAUSES.

    n_traced: pairs with logprobs on both sides. n_hidden: pairs whose logprobs say nothing of why they differ. differs:
    some pair does. is_noise_zero: one bucket gives the same bits each time.
    """
    sides = ours, theirs
    unseen = set(BY_LOGPROBS if not n_traced or n_hidden else ())
    unseen |= set() if is_scored else {"scorer"}
    if differs:
        unseen |= set(_find_unknown(sides))
        unseen |= set() if is_noise_zero else {"silent_change"}
    temperatures = [side.settings.temperature for side in sides]
    if not any(side.settings.temperature == 0 and not side.settings.is_adjusted for side in sides):
        unseen.add("sampler_fault")
    if any(temperatures):
        unseen.add("near_tie")
    if not all(temperatures) or ours.bucket_ids != theirs.bucket_ids:
        unseen.add("seed_ignored")
    return [cause for cause in CAUSES if cause in unseen]


def _find_unknown(sides: tuple[Side, Side]) -> Iterator[str]:
    """Yield the causes whose own facts are not known of both sides."""

    def is_known(*names: str) -> bool:
        served = [[side.known[bucket].served for bucket in side.bucket_ids] for side in sides]
        return any(all(each and all(getattr(one, name) for one in each) for each in served) for name in names)

    if not is_known("weights_digest", "model_revision"):
        yield "model_changed"
    if not is_known("weights_digest", "model_name"):
        yield "model_name_changed"
    if not is_known("fingerprint"):
        yield "backend_changed"
    if any(side.settings.temperature is None for side in sides):
        yield "sampling_changed"
    if any(side.setup.unknown_prompts for side in sides):
        yield "prompt_mismatch"
