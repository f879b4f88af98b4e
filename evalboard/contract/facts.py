"""What is known of each setting that a run's answers were decoded by: asked for, sent, and in effect.

A value that was asked for is not yet one that held: a server may refuse a setting or drop it. Only a fact that is known
has a value that may be compared.
"""

from enum import StrEnum
from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, says


class FactState(StrEnum):
    KNOWN = "known"
    UNKNOWN = "unknown"  # the setting was left out, or no source says it
    CONTRADICTED = "contradicted"  # what was seen is not what was asked for


class FactSource(StrEnum):
    ENGINE = "engine"  # ours, which reads its settings back
    REQUEST = "request"  # sent with each call, and not refused
    REFUSAL = "refusal"  # the server refused it, so that calls went without it
    CHECK = "check"  # a capability check of the endpoint
    ANSWERS = "answers"  # the run's own tokens
    LOG = "log"


class SettingFact(Contract):
    """What is known of one setting of a run's answers."""

    name: str
    wanted: Annotated[Any, says(description="requested by the profile or the log; null: in neither")]
    sent: Annotated[Any, says(description="null: not sent, or not known")]
    state: Annotated[str, says(enum=tuple(FactState))]
    value: Annotated[Any, says(description="in effect; null unless the state is `known`")]
    source: Annotated[str, says(enum=tuple(FactSource))]
    probe: Annotated[Id | None, says(description="the capability check behind the fact")] = None
    at: Annotated[Instant | None, says(description="when that check ended")] = None


class SettingCheck(Contract):
    """An endpoint's newest capability check of one setting. state: as docs/probes.md lists them."""

    state: str
    probe: Id
    at: Instant


class SettingsSeen(Contract):
    """What the answers of a run show about its settings, stored when the run ends.

    n_left_out: of the answers, by setting, how many came from calls without it. n_listed: answers to greedy calls that
    list alternatives, of at most 10,000 that are read; n_not_greedy: those that hold a token below the most likely one.
    """

    n_answers: Count
    n_left_out: dict[str, int]
    checked: dict[str, SettingCheck]
    n_listed: Count = 0
    n_not_greedy: Count = 0
