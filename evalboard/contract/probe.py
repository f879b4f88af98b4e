"""Probes: checks of an endpoint, and the calls they are based on."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, Number, PageAddress, page_only, says
from evalboard.contract.parts import Cost, CostEstimate, Done, Pause, ProfileNamed
from evalboard.contract.probe_kinds import ProbeKind

KINDS = tuple(map(str, ProbeKind))
ROLES = ("endpoint", "control", "numerics", "planted")


class ProbeFound(Contract):
    """A probe's result: `state` is a word of its kind, `sentence` explains it."""

    state: str
    sentence: str


class ProbeFinding(ProbeFound):
    """With every number behind it, by the names of docs/probes.md."""

    numbers: dict[str, Any]


class ProbeAsked(ProfileNamed, Contract):
    """A probe as it is listed."""

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
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")


class ProbeRow(ProbeAsked):
    """A probe in a list: the same names as in `Probe`, fewer of them."""

    finding: ProbeFound | None


class ProbeHop(Contract):
    """The same probe through a gateway and around it."""

    gateway: Annotated[str, says(description="the gateway's endpoint")]
    direct: Annotated[str, says(description="the endpoint of the same model without the gateway")]
    gateway_probe: Id
    direct_probe: Id
    sentence: Annotated[str | None, says(description="what the gateway drops; null until both probes have finished")]
    losses: tuple[tuple[str, str], ...] = page_only  # what the gateway does to what is well without it, and to what


class ProbeSet(Contract):
    """A set of answers in a probe of kind `verify`, with its scoring on the reference so far."""

    role: Annotated[str, says(enum=ROLES)]
    endpoint: Annotated[str, says(description="slug of the endpoint that gave the answers")]
    run: Annotated[Id | None, says(description="null if deleted")]
    run_status: str | None
    forced: Annotated[Id | None, says(description="the forced scoring; null before it is requested")]
    forced_status: str | None


class Probe(ProbeAsked):
    """A probe with all its parameters, and its results so far."""

    parameters: Annotated[dict[str, Any], says(description="all parameters, including defaults")]
    progress: Annotated[Done, says(description="counts calls; of `verify`, its runs and forced scorings")]
    finding: Annotated[
        ProbeFinding | None, says(description="null until it has finished; docs/probes.md explains the numbers")
    ]
    error: Annotated[str | None, says(description="why no call was answered, or why the probe was restarted")]
    hop: Annotated[ProbeHop | None, says(description="null without a bypass")]
    control: Annotated[
        str | None,
        says(description="the known-good endpoint it is compared with, or that there is none; null for our own engine"),
    ]
    cost: Annotated[Cost | None, says(description="so far; null: the endpoint has no price")]
    expected_cost: Annotated[CostEstimate | None, says(description="until it has ended, if the endpoint has a price")]
    workers: Annotated[tuple[str, ...], says(description="workers that have answered")]
    waits_for: Annotated[tuple[str, ...], says(description="workers still to call, for a probe of each worker")]
    rests_until: Annotated[
        Instant | None, says(description="set while its endpoint is paused after failed calls; the probe waits")
    ]
    pause: Annotated[Pause | None, says(description="set while its endpoint is paused")]
    sets: Annotated[tuple[ProbeSet, ...], says(description="the sets of answers of `verify`; empty for other kinds")]
    prompts: tuple[str, ...] = page_only  # the last message of each


class ProbeEstimate(Contract):
    """What a probe would take, before it starts."""

    n_calls: Annotated[
        int, says(minimum=0, description="with those to a bypass; by each worker, for a probe of each worker")
    ]
    n_tokens: Annotated[int, says(minimum=0, description="at most, of prompts and answers together")]
    is_search: Annotated[bool, says(description="of `border`: it searches for prompts, as none are known to be split")]
    cost: Annotated[
        CostEstimate | None,
        says(description="with that of a bypass; null: one of them has no price, or the currencies differ"),
    ]
    sentence: str


class ProbesHeld(ProbeFinding):
    """A comparison of two batch probes, the older one first; `numbers` in that order."""

    first: Id
    second: Id


class ProbeCall(Contract):
    """One request that a probe sent."""

    prompt: Annotated[int, says(minimum=0, description="index of the prompt, from 0; load prompts come last")]
    group: Annotated[
        str, says(description="`same`, `different`, `copy`, `load`, `ask`, or a capability check's question")
    ]
    round: Annotated[int, says(minimum=0, description="calls of one round are decoded together")]
    seed: int | None
    text: str
    tokens: Annotated[tuple[str, ...], says(description="the first 12 tokens of the answer, made readable")]
    finish_reason: str | None
    batch_max: Count | None
    worker: str | None
    fingerprint: str | None
    backend: Annotated[str | None, says(description="the backend that an external server names")]
    marks: Annotated[
        tuple[str, ...], says(description="`cached`, `fallback`, `retried`: why it is left out as no clean sample")
    ]
    error: Annotated[str | None, says(description="the error instead of an answer")]
