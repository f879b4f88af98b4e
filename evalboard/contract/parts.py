"""Parts that several answers have in common: progress, what served, names with their versions."""

from typing import Annotated, Any

from evalboard.contract.base import (
    Contract,
    Count,
    Digest,
    Id,
    Instant,
    Number,
    Points,
    Share,
    optional,
    page_only,
    says,
)


class Cost(Contract):
    """What answered calls cost, by the price of their endpoint and the server's own counts of tokens."""

    amount: Annotated[str | None, says(description="an exact decimal; null: not known, as counts are missing")]
    currency: str
    n_calls: Annotated[Count, says(description="answered calls; a failed call is not counted")]
    n_uncounted: Annotated[Count, says(description="of them, those without counts of tokens")]
    text: Annotated[str, says(description='the amount as it is shown: "0.42 USD"')]


class CostEstimate(Contract):
    """What calls would cost, before they are made."""

    amount: Annotated[str, says(description="a decimal of at most 6 digits")]
    currency: str
    is_limit: Annotated[bool, says(description="the most that it can cost, as no answer of these prompts is known")]
    text: Annotated[str, says(description="one sentence: the amount, and what the estimate uses")]


class Done(Contract):
    n_done: Count
    n_total: Count


class Pause(Contract):
    """No call is made to an external endpoint until then, and what needs it waits."""

    n_failures: Annotated[Count, says(description="failed calls in a row")]
    reason: Annotated[str, says(description="the last failure")]
    until: Annotated[Instant, says(description="the next try")]


class WaitingFor(Pause):
    """A run that has not ended waits for its endpoint, which is paused."""

    endpoint: str
    since: Annotated[Instant, says(description="the first pause since a call came through")]


class RepeatScored(Contract):
    index: Number
    score: Annotated[Points | None, says(description="null if responses are missing, or for several buckets")]


class ByChance(Contract):
    """How many cases would break, or get fixed, if nothing changed, and how many exceed that."""

    n_expected: Annotated[float, says(minimum=0)]
    n_beyond: Annotated[Count, says(description="at most 1 in 10 of them is due to chance")]


InEveryRepeat = Annotated[
    bool, says(description="repeats give the same bits, so a case that changed did so in every repeat")
]


class ResponseError(Contract):
    code: str
    detail: str


class AdapterServed(Contract):
    """A LoRA adapter, by the content of its weights and configuration, and the base that it was on."""

    digest: Digest
    base_digest: Annotated[Digest, says(description="of the base as a model of its own")]


class ModelServed(Contract):
    name: str
    digest: Digest
    adapter: Annotated[AdapterServed | None, says(description="null: no LoRA adapter was on the model")] = optional


class FingerprintNamed(Contract):
    id: Id
    digest: Digest
    label: str
    backend: str | None = page_only  # what its endpoint calls it

    @property
    def title(self) -> str:
        """Return what pages call it: by its endpoint's name for it, else by what it is."""
        return f"backend {self.backend}" if self.backend else self.label

    @property
    def more(self) -> str:
        """Return the label, "" where the title says it."""
        return "" if self.label in (self.title, self.backend) else self.label


class BucketNamed(Contract):
    """A bucket: the model, the serving stack, and the batch class."""

    id: Id
    model: ModelServed
    fingerprint: FingerprintNamed
    batch_class: str


class BucketShare(BucketNamed):
    """A bucket of responses, and its share of a run."""

    n_responses: Count
    share: Share


class Seats(Contract):
    """How many sequences an engine process decodes at a time: requested by the profile, and granted."""

    asked: Count
    got: Count


def name_version(slug: str, version: int) -> str:
    """Return "pinned", or "pinned v2" for a later version than the first."""
    return slug if version == 1 else f"{slug} v{version}"


class ProfileNamed:
    """What has a `profile` and its `profile_version`."""

    @property
    def profile_name(self: Any) -> str:
        return name_version(self.profile, self.profile_version)


class Estimate(Contract):
    """A number with its interval at 95 %, null where there are too few answers for one."""

    value: float
    low: float | None
    high: float | None
