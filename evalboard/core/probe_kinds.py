"""The kinds of probes, for whoever names one: docs/probes.md says what each asks of an endpoint."""

from enum import StrEnum


class ProbeKind(StrEnum):
    """A `match` over it without a default lets mypy find the place that does not know a new kind."""

    SEED = "seed"
    BATCH = "batch"
    ROUTING = "routing"
    CANARY = "canary"
    CAPABILITY = "capability"
