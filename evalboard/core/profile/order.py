"""The order in which a repeat's cases are decoded, where that is not the suite's (docs/profiles.md)."""

from evalboard.core import digest


def order_key(run_id: int, *, repeat: int, case_index: int) -> bytes:
    """Return what to sort a repeat's cases by where they are shuffled: as good as random, and the same every time.

    It depends on nothing else, so that an attempt that takes over goes on in the same order. Two runs have different
    orders, and so have two repeats.
    """
    return digest.short_digest(digest.canonical_json(["order", run_id, repeat, case_index]))
