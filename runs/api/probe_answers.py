"""What the API answers of probes."""

from typing import Annotated, Any, TypedDict

from runs import models
from runs.api.answers import Address, Count, Done, Id, Instant, Number
from runs.api.schema_types import says


class ProbeFound(TypedDict):
    """What a probe found: `state` is a word of its kind, `sentence` for people."""

    state: str
    sentence: str


class ProbeFinding(ProbeFound):
    """With every number behind it, by the names of docs/probes.md."""

    numbers: dict[str, Any]


class ProbeAsked(TypedDict):
    """What a probe has in a list too."""

    id: Id
    endpoint: str
    kind: Annotated[str, says(enum=models.Probe.Kind.values)]
    profile: str
    profile_version: Number
    status: Annotated[str, says(enum=models.Probe.Status.values)]
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: Address


class ProbeRow(ProbeAsked):
    """A probe in a list: the same names as in `Probe`, fewer of them."""

    finding: ProbeFound | None


class Probe(ProbeAsked):
    """A probe with its complete parameters, as far as it is. `finding` is null until it has finished.

    `progress` counts calls. `error` is why it failed, or why it was begun again. `workers` have answered; `waits_for`
    are those that a routing probe still has to ask.
    """

    parameters: dict[str, Any]
    progress: Done
    finding: ProbeFinding | None
    error: str | None
    workers: list[str]
    waits_for: list[str]


class ProbesHeld(ProbeFinding):
    """Two batch probes held against each other, the older one first; `numbers` in that order."""

    first: Id
    second: Id


class ProbeCall(TypedDict):
    """One request that a probe sent. `prompt` counts into its prompts from 0; calls of one `round` went together.

    `tokens` are the first of the answer, as they can be seen; `error` is the engine's, and then there is no answer.
    """

    prompt: Count
    group: str
    round: Count
    seed: int | None
    text: str
    tokens: list[str]
    finish_reason: str | None
    batch_max: Count | None
    worker: str | None
    fingerprint: str | None
    error: str | None
