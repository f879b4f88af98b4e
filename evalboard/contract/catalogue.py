"""What runs and releases name: endpoints, profiles, policies, and names of models that are one."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Digest, Id, Instant, Number, says


class ModelAtPath(Contract):
    """A checkpoint in a folder on the worker."""

    path: str

    @property
    def address(self) -> str:
        return self.path


class ModelInRepo(Contract):
    """A checkpoint in a repository on a model hub, at one commit."""

    repo: str
    revision: str

    @property
    def address(self) -> str:
        return self.repo


class Endpoint(Contract):
    slug: str
    engine: str
    model: ModelAtPath | ModelInRepo
    dtype: str
    quantization: str
    line: str
    max_model_len: Annotated[Number | None, says(description="null where others run it")]
    pool: str

    @property
    def model_name(self) -> str:
        """Return the last part of the path or repository: what people call the model."""
        return self.model.address.rstrip("/").rsplit("/", 1)[-1]


class Profile(Contract):
    slug: str
    version: Number
    title: str
    settings: dict[str, Any]
    digest: Digest
    created_at: Instant


class Policy(Profile):
    """What releases are judged by; `suites` carry it."""

    suites: tuple[str, ...]
    created_by: str | None


class SameModel(Contract):
    """Two names that a person said are one model; `taken_back_at` is null while it holds."""

    id: Id
    name: str
    other_name: str
    reason: str
    said_by: str | None
    said_at: Instant
    taken_back_by: str | None
    taken_back_at: Instant | None
