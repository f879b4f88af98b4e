"""Probes: checks of an endpoint itself, and the calls that they rest on."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, Number, PageAddress, page_only, says
from evalboard.contract.parts import Done, Pause, name_version
from evalboard.contract.probe_kinds import ProbeKind

KINDS = tuple(map(str, ProbeKind))
ROLES = ("endpoint", "control", "numerics", "planted")


class ProbeFound(Contract):
    """What a probe found: `state` is a word of its kind, `sentence` for people."""

    state: str
    sentence: str


class ProbeFinding(ProbeFound):
    """With every number behind it, by the names of docs/probes.md."""

    numbers: dict[str, Any]


class ProbeAsked(Contract):
    """What a probe has in a list too."""

    id: Id
    endpoint: str
    kind: Annotated[str, says(enum=KINDS)]
    profile: str
    profile_version: Number
    status: Annotated[str, says(enum=("queued", "running", "finished", "failed"))]
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: PageAddress

    @property
    def profile_name(self) -> str:
        return name_version(self.profile, self.profile_version)

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")


class ProbeRow(ProbeAsked):
    """A probe in a list: the same names as in `Probe`, fewer of them."""

    finding: ProbeFound | None


class ProbeHop(Contract):
    """The same probe through a gateway and around it."""

    gateway: Annotated[str, says(description="the endpoint that is a gateway")]
    direct: Annotated[str, says(description="the endpoint that is the same model without it")]
    gateway_probe: Id
    direct_probe: Id
    sentence: Annotated[str | None, says(description="which hop drops it; null until both probes have found something")]
    losses: tuple[tuple[str, str], ...] = page_only  # what the gateway does to what is well without it, and to what


class ProbeSet(Contract):
    """One set of answers that a probe of kind `verify` holds together, as far as it is scored on the reference."""

    role: Annotated[str, says(enum=ROLES)]
    endpoint: Annotated[str, says(description="that gave the answers; its slug")]
    run: Annotated[Id | None, says(description="null where it was deleted")]
    run_status: str | None
    forced: Annotated[Id | None, says(description="the forced scoring; null before it is asked for")]
    forced_status: str | None


class Probe(ProbeAsked):
    """A probe with its complete parameters, as far as it is."""

    parameters: Annotated[dict[str, Any], says(description="all of them, those too that were not set")]
    progress: Annotated[Done, says(description="counts calls; of `verify`, its runs and forced scorings")]
    finding: Annotated[
        ProbeFinding | None, says(description="null until it has finished; numbers as in docs/probes.md")
    ]
    error: Annotated[str | None, says(description="why no call was answered, or why the probe was begun again")]
    hop: Annotated[ProbeHop | None, says(description="null where the endpoint names no bypass")]
    control: Annotated[
        str | None,
        says(description="the known-good endpoint it is held against, or that it had none; null of an engine of ours"),
    ]
    workers: Annotated[tuple[str, ...], says(description="those that have answered")]
    waits_for: Annotated[tuple[str, ...], says(description="those that a probe of each worker still has to ask")]
    rests_until: Annotated[
        Instant | None, says(description="while its endpoint rests after failed calls: the probe waits as long")
    ]
    pause: Annotated[Pause | None, says(description="while its endpoint is paused")]
    sets: Annotated[tuple[ProbeSet, ...], says(description="what `verify` holds together; none of other kinds")]
    prompts: tuple[str, ...] = page_only  # the last message of each


class ProbesHeld(ProbeFinding):
    """Two batch probes held against each other, the older one first; `numbers` in that order."""

    first: Id
    second: Id


class ProbeCall(Contract):
    """One request that a probe sent."""

    prompt: Annotated[
        int, says(minimum=0, description="which of its prompts, from 0; those of a load come after its own")
    ]
    group: Annotated[
        str, says(description="`same`, `different`, `copy`, `load`, `ask`, or what a capability check asks for")
    ]
    round: Annotated[int, says(minimum=0, description="calls of one round were decoded together")]
    seed: int | None
    text: str
    tokens: Annotated[tuple[str, ...], says(description="the first 12 of the answer, as they can be seen")]
    finish_reason: str | None
    batch_max: Count | None
    worker: str | None
    fingerprint: str | None
    backend: Annotated[str | None, says(description="what a server of others says of who answered")]
    marks: Annotated[
        tuple[str, ...], says(description="`cached`, `fallback`, `retried`: why it is no clean sample, and left out")
    ]
    error: Annotated[str | None, says(description="the engine's; then there is no answer")]
