"""The kinds of probes (docs/probes.md explains each)."""

from enum import StrEnum


class ProbeKind(StrEnum):
    """A `match` over it without a default lets mypy find the place that does not know a new kind."""

    SEED = "seed"
    BATCH = "batch"
    ROUTING = "routing"
    CANARY = "canary"
    CAPABILITY = "capability"
    DETERMINISM = "determinism"
    AUDIT = "audit"
    VERIFY = "verify"


# Look at every bit of an answer, and not at its text alone.
EXACT = frozenset({ProbeKind.DETERMINISM, ProbeKind.AUDIT})
# Probes of every worker of the pool, one after the other, unless the server is external.
OF_EACH_WORKER = frozenset({ProbeKind.ROUTING, ProbeKind.DETERMINISM, ProbeKind.AUDIT})
