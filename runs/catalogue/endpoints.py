"""Endpoints, profiles, and which models a run may name."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from evalboard.contract.catalogue import is_in_repo
from evalboard.core import digest
from evalboard.core.cost import clean_price, price_problem
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.profile import DEFAULT_PROFILES, DTYPES, MAX_SIZE, SIZES, find_size_refusal, parse_profile
from runs.catalogue.remote import auth_problem, read_remote
from runs.models import EndpointRecord, ProfileRecord, WorkerRecord

SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
# Those that decode; an imported endpoint comes with its log and no other way.
ENGINES = tuple(engine for engine in EndpointRecord.Engine.values if engine != EndpointRecord.Engine.IMPORTED)
MAX_POOL_CHARS = 40
DEFAULT_CONTEXT = 2048  # tokens
ONLY_OURS = "Only an endpoint whose model a worker loads itself (engine vllm) has this."
ONLY_REPO = "Of an endpoint with our engine, only a model or adapter in a hub's repository has a token; leave it out."
ONLY_REMOTE = "Only an external endpoint (engine openai) has this."
BUCKET_PREFIX = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[^/\s?#]+)+")
COMMIT = re.compile(r"[0-9a-f]{40}")
REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def create_endpoint(
    *,
    slug: str,
    engine: str = EndpointRecord.Engine.VLLM,
    line: str = "",
    pool: str = "default",
    model_path: str = "",
    model_repo: str = "",
    model_revision: str = "",
    model_adapter: str = "",
    model_name: str = "",
    dtype: str | None = None,
    quantization: str = "",
    max_model_len: int | None = None,
    auth: str | None = None,
    tensor_parallel_size: int | None = None,
    pipeline_parallel_size: int | None = None,
    **remote: Any,
) -> EndpointRecord:
    """Store an endpoint. Raises InvalidInput with fields, or Conflict where the slug is taken.

    auth: where a worker reads the key, or the hub's token of a model's repository: a variable or a file. `remote` are
    the other fields of an external one (`read_remote`). What only the one kind of endpoint has is refused
    of the other, by name. `model_adapter` is a LoRA adapter on the model, as in `model_problems`.
    """
    sizes = {"tensor_parallel_size": tensor_parallel_size, "pipeline_parallel_size": pipeline_parallel_size}
    fields: dict[str, str] = {}
    if not SLUG.fullmatch(slug):
        fields["slug"] = "Use small letters, digits, dots, dashes; at most 80."
    if engine not in ENGINES:
        fields["engine"] = f"Must be one of: {', '.join(ENGINES)}."
    if not pool or len(pool) > MAX_POOL_CHARS:
        fields["pool"] = f"Name the workers that serve it, in at most {MAX_POOL_CHARS} characters."
    if engine == EndpointRecord.Engine.OPENAI:
        ours: dict[str, str | int | None] = {
            "model.path": model_path,
            "model.repo": model_repo,
            "model.revision": model_revision,
            "model.adapter": model_adapter,
            **sizes,
        }
        ours |= {"dtype": dtype, "quantization": quantization, "max_model_len": max_model_len}
        fields |= {name: ONLY_OURS for name, value in ours.items() if value}
        chosen, problems = read_remote(model_name=model_name, line=line, auth=auth, **remote)
    else:
        theirs = {"model.name": model_name or None, **remote}
        fields |= {name: ONLY_REMOTE for name, value in theirs.items() if value is not None}
        chosen = {
            "model_path": model_path,
            "model_repo": model_repo,
            "model_revision": model_revision,
            "model_adapter": model_adapter,
            **{name: 1 if size is None else size for name, size in sizes.items()},
            "dtype": dtype,
            "quantization": quantization,
            "line": line,
            "auth": auth or "",
            "max_model_len": DEFAULT_CONTEXT if max_model_len is None else max_model_len,
        }
        named = {"path": model_path, "repo": model_repo, "revision": model_revision, "adapter": model_adapter}
        problems = {} if model_name else model_problems(**named)
        problems |= _own_problems(dtype, line, chosen["max_model_len"])
        if auth and (problem := auth_problem(auth) if model_repo or is_in_repo(model_adapter) else ONLY_REPO):
            problems["auth"] = problem
        problems |= _size_problems({name: chosen[name] for name in SIZES}, pool)
    if fields := {**problems, **fields}:
        raise InvalidInput("The endpoint is not valid.", fields=fields)
    try:
        with transaction.atomic():
            return EndpointRecord.objects.create(slug=slug, engine=engine, pool=pool, **chosen)
    except IntegrityError as taken:
        raise Conflict(f"There is an endpoint named {slug} already; choose another slug.") from taken


def ignore_fingerprint(*, endpoint: str, ignores: bool) -> EndpointRecord:
    """Say whether the fingerprints of an external endpoint's answers name no server.

    Answers that came stay as they are. Raises NotFound or InvalidInput.
    """
    known = EndpointRecord.objects.filter(slug=endpoint).first()
    if known is None:
        raise NotFound(f"There is no endpoint {endpoint}. The page Endpoints lists them.")
    if not known.is_remote:
        raise InvalidInput("The endpoint is not valid.", fields={"ignores_fingerprint": ONLY_REMOTE})
    known.ignores_fingerprint = ignores
    known.save(update_fields=["ignores_fingerprint"])
    return known


def set_price(*, endpoint: str, price: Mapping[str, Any] | None) -> EndpointRecord:
    """Set what a million tokens of an external endpoint cost; None or {}: not known.

    A run or probe that was asked for under another price keeps that. Raises NotFound or InvalidInput.
    """
    known = EndpointRecord.objects.filter(slug=endpoint).first()
    if known is None:
        raise NotFound(f"There is no endpoint {endpoint}. The page Endpoints lists them.")
    problem = price_problem(price) if price else None
    if problem := problem if known.is_remote else ONLY_REMOTE:
        raise InvalidInput("The endpoint is not valid.", fields={"price": problem})
    known.price = clean_price(price)
    known.save(update_fields=["price"])
    return known


def _own_problems(dtype: str | None, line: str, max_model_len: int) -> dict[str, str]:
    """Return the problems, by field, of an endpoint with our engine, except those of its model."""
    fields: dict[str, str] = {}
    if dtype not in DTYPES:
        fields["dtype"] = f"Must be one of: {', '.join(DTYPES)}. It is never left to the engine to choose."
    if not 16 <= max_model_len <= 1_048_576:
        fields["max_model_len"] = "Must be a whole number of tokens from 16 to 1,048,576."
    if not line:
        fields["line"] = "Name the series that the model belongs to; baselines are kept by it."
    return fields


def _size_problems(sizes: Mapping[str, int], pool: str) -> dict[str, str]:
    """Return the problems, by field, of an endpoint's sizes.

    They are out of range, or no living worker of its pool has the GPUs. A pool without a living worker has no problem
    yet; a run is then refused by the workers that come.
    """
    if wrong := [name for name, size in sizes.items() if not 1 <= size <= MAX_SIZE]:
        return dict.fromkeys(wrong, f"Must be a whole number of GPUs from 1 to {MAX_SIZE}.")
    seen = timezone.now() - timedelta(seconds=settings.LEASE_SECONDS)
    living = WorkerRecord.objects.filter(pool=pool, stopped_at=None, seen_at__gt=seen)
    gap = find_size_refusal(living.values_list("hardware", flat=True), (sizes[SIZES[0]], sizes[SIZES[1]]), pool=pool)
    largest = max(sizes, key=lambda name: sizes[name])
    return {largest: gap} if gap else {}


def model_problems(*, path: str, repo: str, revision: str, adapter: str = "") -> dict[str, str]:
    """Return the problems, by field, of a model's name: a path under an allowed root, or a repository.

    adapter: of a LoRA adapter on the model: a path, under an allowed root too, or owner/name@commit.
    """
    if adapter and (problem := _adapter_problem(adapter)):
        return {"model.adapter": problem}
    if bool(path) == bool(repo):
        return {"model": "Name a path or a repository, and not both."}
    if path:
        problem = _path_problem(path)
        return {"model.path": problem} if problem else {}
    if not REPO.fullmatch(repo):
        return {"model.repo": "Must look like owner/name."}
    if not COMMIT.fullmatch(revision):
        return {"model.revision": "Must be a full commit of 40 hexadecimal digits: a branch can move under a run."}
    return {}


def _adapter_problem(adapter: str) -> str | None:
    if not is_in_repo(adapter):
        return _path_problem(adapter)
    repo, _, commit = adapter.partition("@")
    if REPO.fullmatch(repo) and COMMIT.fullmatch(commit):
        return None
    return "Must look like owner/name@commit, with the whole commit of 40 digits: a branch can move."


def _path_problem(path: str) -> str | None:
    """Return why neither a folder nor a bucket's prefix of that name may be loaded."""
    if path.startswith("s3://"):
        return _bucket_problem(path)
    where = Path(path).resolve()
    if any(where.is_relative_to(root) for root in settings.MODEL_ROOTS):
        return None
    return f"Must lie under {', '.join(str(root) for root in settings.MODEL_ROOTS)} (EVALBOARD_MODEL_ROOTS)."


def _bucket_problem(path: str) -> str | None:
    if not BUCKET_PREFIX.fullmatch(path) or ".." in path.split("/"):
        return "Must look like s3://bucket/prefix, without a slash at the end."
    if not any(path.startswith(f"{root}/") for root in settings.MODEL_BUCKETS):
        roots = ", ".join(settings.MODEL_BUCKETS) or "no bucket"
        return f"Must be under one of the buckets that EVALBOARD_MODEL_ROOTS lists: {roots}."
    return None


def create_profile(*, slug: str, title: str, settings: Mapping[str, Any]) -> tuple[ProfileRecord, bool]:
    """Store a profile, or its next version where the settings changed; False if they are stored already."""
    if not SLUG.fullmatch(slug):
        raise InvalidInput("The profile is not valid.", fields={"slug": "Use small letters, digits, dots, dashes."})
    parse_profile(settings)
    content = digest.digest_json(settings)
    with transaction.atomic():
        newest = ProfileRecord.objects.select_for_update().filter(slug=slug).order_by("-version").first()
        if newest is not None and newest.digest == content:
            return newest, False
        version = 1 if newest is None else newest.version + 1
        try:
            return (
                ProfileRecord.objects.create(
                    slug=slug, version=version, title=title or slug, settings=dict(settings), digest=content
                ),
                True,
            )
        except IntegrityError as raced:
            raise Conflict(f"Another request changed the profile {slug} at the same moment; try again.") from raced


def store_default_profiles() -> list[str]:
    """Store default profiles whose name is free, and return their names. Changed ones stay."""
    known = set(ProfileRecord.objects.filter(slug__in=DEFAULT_PROFILES).values_list("slug", flat=True))
    absent = {slug: default for slug, default in DEFAULT_PROFILES.items() if slug not in known}
    for slug, default in absent.items():
        create_profile(slug=slug, title=default["title"], settings=default["settings"])
    return list(absent)
