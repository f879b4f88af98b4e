"""Check the settings of an external endpoint: its address, its key's source, and its calls' constants."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evalboard.calling.endpoint_fields import clean_base_url, extra_body_problems, header_problems
from evalboard.core.cost import clean_price, price_problem
from evalboard.core.secret_names import is_own_file, looks_like_key, variable_problem
from runs.models import EndpointRecord

MAX_NAME_CHARS = 200
MAX_LINE_CHARS = 80
MAX_CONCURRENCY = 64
MAX_CALLS_PER_MINUTE = 100_000
DEFAULT_CONCURRENCY = 8


def auth_problem(auth: str) -> str | None:
    """Return why a key cannot be read from there; "" needs none.

    The text is never quoted, since it may be a key.
    """
    if not auth:
        return None
    if auth.startswith("/"):
        return _file_problem(auth)
    return variable_problem(auth, allowed=settings.ENDPOINT_KEYS)


def read_remote(
    *,
    model_name: str,
    line: str,
    base_url: str | None = None,
    api: str | None = None,
    auth: str | None = None,
    headers: Mapping[str, Any] | None = None,
    extra_body: Mapping[str, Any] | None = None,
    concurrency: int | None = None,
    calls_per_minute: int | None = None,
    reference: str | None = None,
    bypass: str | None = None,
    rescores: bool | None = None,
    daily_check: bool | None = None,
    price: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the row's fields of an external endpoint, and the problems by field. None: use the default.

    `reference` and `bypass` are slugs.
    """
    clean, url_problem = clean_base_url(base_url or "", hosts=settings.ENDPOINT_HOSTS)
    ours, reference_problem = _find(
        reference,
        EndpointRecord.Engine.VLLM,
        "Must be the slug of an endpoint whose model a worker loads itself (vllm).",
    )
    direct, bypass_problem = _find(
        bypass, EndpointRecord.Engine.OPENAI, "Must be the slug of another external endpoint (openai)."
    )
    chosen: dict[str, Any] = {
        "model_repo": model_name,
        "dtype": "",
        "line": line or model_name,
        "max_model_len": None,
        "base_url": clean,
        "api": api or EndpointRecord.Api.CHAT,
        "auth": auth or "",
        "headers": dict(headers or {}),
        "extra_body": dict(extra_body or {}),
        "concurrency": DEFAULT_CONCURRENCY if concurrency is None else concurrency,
        "calls_per_minute": calls_per_minute,
        "reference": ours,
        "bypass": direct,
        "rescores": bool(rescores),
        "daily_check": bool(daily_check),
        "price": clean_price(price),
    }
    problems = {
        "base_url": url_problem,
        "model.name": _model_problem(model_name),
        "line": None if len(chosen["line"]) <= MAX_LINE_CHARS else "Name the model's series in at most 80 characters.",
        "api": None
        if chosen["api"] in EndpointRecord.Api.values
        else f"Must be one of: {', '.join(EndpointRecord.Api.values)}.",
        "auth": auth_problem(chosen["auth"]),
        "concurrency": (
            None
            if 1 <= chosen["concurrency"] <= MAX_CONCURRENCY
            else f"Must be a whole number of calls from 1 to {MAX_CONCURRENCY}."
        ),
        "calls_per_minute": (
            None
            if calls_per_minute is None or 1 <= calls_per_minute <= MAX_CALLS_PER_MINUTE
            else f"Must be a whole number of calls from 1 to {MAX_CALLS_PER_MINUTE:,}."
        ),
        "reference": reference_problem,
        "bypass": bypass_problem,
        "price": price_problem(price) if price else None,
    }
    wrong = {name: problem for name, problem in problems.items() if problem}
    wrong |= header_problems(chosen["headers"], auth=chosen["auth"], keys=settings.ENDPOINT_KEYS)
    return chosen, wrong | extra_body_problems(chosen["extra_body"])


def _model_problem(name: str) -> str | None:
    if not name or len(name) > MAX_NAME_CHARS or name != " ".join(name.split()):
        return f"Name the model as the server does, in at most {MAX_NAME_CHARS} characters."
    return (
        None if name.isprintable() and not looks_like_key(name) else "Must be a model's name, as the server lists it."
    )


def _find(slug: str | None, engine: str, problem: str) -> tuple[EndpointRecord | None, str | None]:
    if not slug:
        return None, None
    endpoint = EndpointRecord.objects.filter(slug=slug, engine=engine).first()
    return endpoint, None if endpoint else problem


def _file_problem(path: str) -> str | None:
    folder = settings.SECRETS_DIR
    # Parts are judged as written: the file is on the worker, and links are followed there.
    if ".." in Path(path).parts or not Path(path).is_relative_to(folder) or Path(path) == folder:
        return f"Must be a file below {folder} (EVALBOARD_SECRETS_DIR)."
    if is_own_file(path):
        return "This file is Evalboard's or the cluster's own and must not reach an external server; name another one."
    return None
