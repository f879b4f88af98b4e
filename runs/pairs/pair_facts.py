"""Facts common to a run's or a bucket's responses (`core.compare.run_facts`), and vocabularies."""

from collections.abc import Iterable

from evalboard.contract.run import Draws
from evalboard.core.compare import (
    ServingFacts,
    WordsById,
    compared_settings,
    draws_of,
    find_other_model,
    fingerprint_of,
    is_greedy_wanted,
    limits_of,
    logits_of,
    request_settings,
    setting_facts,
    settings_seen,
    stack_of,
)
from evalboard.core.compare import served_beside as find_served
from evalboard.core.profile import find_temperature, is_not_greedy, list_setting_facts
from evalboard.core.trace import Vocabulary
from runs.catalogue import OneNames
from runs.models import BucketRecord, EndpointRecord, ProfileRecord, RunRecord, VocabularyRecord

__all__ = [
    "WORDS",
    "compared_settings",
    "count_not_greedy",
    "draws_of",
    "find_other_model",
    "fingerprint_of",
    "is_greedy_wanted",
    "limits_of",
    "logits_of",
    "planned_draws",
    "request_settings",
    "served_beside",
    "setting_facts",
    "settings_seen",
    "stack_of",
    "stored_words",
]


def planned_draws(profile: ProfileRecord, endpoint: EndpointRecord, *, seed: int | None = None) -> Draws:
    """Return how a run's repeats would be sampled, as far as known before. seed None: the profile's."""
    wanted = profile.settings["sampling"]
    facts = list_setting_facts(wanted, is_external=endpoint.is_remote, is_logged=False, seen=None)
    return Draws(find_temperature(facts), wanted.get("seed") if seed is None else seed, is_external=endpoint.is_remote)


def count_not_greedy(run: RunRecord) -> tuple[int, int] | None:
    """Return (answers with a token that is not the most likely one, all answers); None if greedy."""
    seen = settings_seen(run)
    return (seen.n_not_greedy, seen.n_listed) if seen is not None and is_not_greedy(seen) else None


def served_beside(run: RunRecord, other: RunRecord, buckets: Iterable[BucketRecord]) -> dict[int, ServingFacts]:
    """Return what `core.compare.served_beside` does, by the names that people called the same."""
    return find_served(run, other, buckets, OneNames())


def _read_vocabulary(pk: int) -> Vocabulary:
    return Vocabulary.unpack(bytes(VocabularyRecord.objects.values_list("data", flat=True).get(pk=pk)))


WORDS = WordsById(_read_vocabulary)
stored_words = WORDS.read
