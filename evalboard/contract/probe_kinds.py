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
    VENDOR = "vendor"
    BORDER = "border"


# Look at every bit of an answer, and not at its text alone.
EXACT = frozenset({ProbeKind.DETERMINISM, ProbeKind.AUDIT})
# Probes of every worker of the pool, one after the other, unless the server is external.
OF_EACH_WORKER = frozenset({ProbeKind.ROUTING, ProbeKind.DETERMINISM, ProbeKind.AUDIT})
# Ask external servers alone, and choose all of their sampling: nothing of the profile's is sent.
OF_EXTERNAL_SERVERS = frozenset({ProbeKind.CAPABILITY, ProbeKind.VENDOR, ProbeKind.BORDER})
