"""What runs and releases name: endpoints, profiles, policies, and names of models that are one."""

from typing import Annotated, Any
from urllib.parse import urlsplit

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, Number, optional, says

Api = Annotated[str, says(enum=("chat", "completions", "responses"))]


Adapter = Annotated[
    str | None,
    says(description="a LoRA adapter: a folder on the worker, s3://bucket/prefix or owner/name@commit; null: none"),
]


def is_in_repo(adapter: str) -> bool:
    """Tell whether an adapter's address is a hub's repository at a commit, owner/name@commit."""
    return "@" in adapter and not adapter.startswith(("/", "s3://"))


def name_adapted(model: str, adapter: str) -> str:
    """Return what people call a model: "smollm2", or "adapter tone-v2 on smollm2".

    model, adapter: their addresses, of which the last parts are the names.
    """
    place = adapter.partition("@")[0] if is_in_repo(adapter) else adapter
    base, own = (each.rstrip("/").rsplit("/", 1)[-1] for each in (model, place))
    return f"adapter {own} on {base}" if own else base


class ModelAtPath(Contract):
    """A checkpoint in a folder on the worker."""

    path: str
    adapter: Adapter = optional

    @property
    def address(self) -> str:
        return self.path


class ModelInRepo(Contract):
    """A checkpoint in a repository on a model hub, at one commit."""

    repo: str
    revision: str
    adapter: Adapter = optional

    @property
    def address(self) -> str:
        return self.repo


class ModelByName(Contract):
    """A model of an external server, by the name that the server uses."""

    name: str

    @property
    def address(self) -> str:
        return self.name


class HeaderFromVariable(Contract):
    """A header whose value the worker reads from one of its environment variables."""

    env: str


class Price(Contract):
    """What a server charges for a million tokens: exact decimals, such as "2.50"."""

    currency: str
    input: Annotated[str, says(description="of prompts")]
    output: Annotated[str, says(description="of answers")]
    cached: Annotated[str | None, says(description="of prompts, those read from a cache; null: as `input`")]
    reasoning: Annotated[str | None, says(description="of answers, those of thinking; null: as `output`")]


class Endpoint(Contract):
    """Where a model answers. Fields of the other kind of endpoint (our engine, or external) are null."""

    slug: str
    engine: str
    model: ModelAtPath | ModelInRepo | ModelByName
    dtype: Annotated[str, says(description="empty for an external server")]
    quantization: str
    line: str
    max_model_len: Annotated[Number | None, says(description="null for an external server")]
    tensor_parallel_size: Annotated[Number | None, says(description="null for an external server")]
    pipeline_parallel_size: Annotated[Number | None, says(description="null for an external server")]
    pool: str
    base_url: str | None
    api: Api | None
    auth: Annotated[
        str | None,
        says(description="the variable or file where a worker reads the key, or the hub's token; empty for none"),
    ]
    headers: dict[str, str | HeaderFromVariable] | None
    extra_body: dict[str, Any] | None
    concurrency: Annotated[Number | None, says(description="calls in flight, of all workers together")]
    calls_per_minute: Annotated[Number | None, says(description="of all workers together; null: no limit")]
    price: Annotated[Price | None, says(description="null: not known")]
    reference: Annotated[str | None, says(description="ours, which serves the same weights")]
    bypass: Annotated[str | None, says(description="the same model without the gateway")]
    rescores: Annotated[bool | None, says(description="runs the reference set automatically after a rotation")]
    daily_check: Annotated[
        bool | None, says(description="a schedule checks daily what it honours, from its first use on")
    ]
    endings: Annotated[dict[str, str], says(description="what words that are in no list mean at the end of an answer")]
    ignores_fingerprint: Annotated[
        bool | None, says(description="no server is told by its system_fingerprint, which names none")
    ]
    rests_until: Annotated[Instant | None, says(description="no call is made before, after failures in a row")]
    rest_reason: str | None
    n_failures: Annotated[Count | None, says(description="failed calls in a row, while it is paused")]

    @property
    def model_name(self) -> str:
        """Return what people call the model."""
        return name_adapted(self.model.address, self.adapter)

    @property
    def adapter(self) -> str:
        """Return the address of the LoRA adapter, "" without one."""
        return "" if isinstance(self.model, ModelByName) else self.model.adapter or ""

    @property
    def about(self) -> str:
        """Return the model, and its dtype or the host of the server: "paint-1b, float32"."""
        where = self.dtype or urlsplit(self.base_url or "").netloc
        return f"{self.model_name}, {where}" if where else self.model_name


class Profile(Contract):
    slug: str
    version: Number
    title: str
    settings: dict[str, Any]
    digest: Digest
    created_at: Instant


class Policy(Profile):
    """The rules by which releases are judged; `suites` use it."""

    suites: tuple[str, ...]
    created_by: str | None


class SameModel(Contract):
    """A declaration that two names are one model; `taken_back_at` is null while it is valid."""

    id: Id
    name: str
    other_name: str
    reason: str
    said_by: str | None
    said_at: Instant
    taken_back_by: str | None
    taken_back_at: Instant | None
