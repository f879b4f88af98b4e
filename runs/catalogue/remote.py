"""Check the settings of an external endpoint: its address, its key's source, and its calls' constants."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from evalboard.calling.endpoint_fields import SECRET_NAME, clean_base_url, header_problems
from evalboard.core.fields import SAMPLING_FIELDS, THINKING_FIELDS
from evalboard.core.secret_names import looks_like_key, variable_problem
from runs.models import EndpointRecord

MAX_NAME_CHARS = 200
MAX_LINE_CHARS = 80
MAX_BODY_BYTES = 8 * 1024
MAX_CONCURRENCY = 64
MAX_CALLS_PER_MINUTE = 100_000
DEFAULT_CONCURRENCY = 8

# What a call is made of, beside what the profile says: the case's own fields, and the suite's.
BODY_OWN = re.compile(
    r"messages|model|prompt|input|instructions|n|best_of|stream|stream_options|max_(?:completion_|output_)?tokens|stop|"
    r"top_logprobs|echo|return_token_ids|return_tokens_as_token_ids"
)


def auth_problem(auth: str) -> str | None:
    """Return why a key cannot be read from there; "" needs none.

    The text is never quoted, since it may be a key.
    """
    if not auth:
        return None
    if auth.startswith("/"):
        return _file_problem(auth)
    return variable_problem(auth)


def extra_body_problems(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems, by field, of the constant fields of every call's body."""
    try:
        size = len(json.dumps(body, allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        return {"extra_body": "Must be JSON, with finite numbers."}
    if size > MAX_BODY_BYTES:
        return {"extra_body": f"Must be at most {MAX_BODY_BYTES // 1024} KiB as JSON."}
    problems = {
        f"extra_body.{name}": "The case, the suite or the profile says this; it cannot be a constant of the endpoint."
        for name in body
        if BODY_OWN.fullmatch(name) or name in SAMPLING_FIELDS or name in THINKING_FIELDS
    }
    for path, value in _walk(body, "extra_body"):
        if isinstance(value, str) and (looks_like_key(value) or SECRET_NAME.fullmatch(path.rpartition(".")[2])):
            problems[path] = "A key must not be stored; give it as a header that names a variable."
    return problems


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
        bypass, EndpointRecord.Engine.OPENAI, "Must be the slug of another endpoint that others run (openai)."
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
    }
    wrong = {name: problem for name, problem in problems.items() if problem}
    wrong |= header_problems(chosen["headers"], auth=chosen["auth"])
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
    # Parts are judged as written: the file lies on the worker, and links are followed there.
    if ".." in Path(path).parts or not Path(path).is_relative_to(folder) or Path(path) == folder:
        return f"Must be a file below {folder} (EVALBOARD_SECRETS_DIR)."
    return None


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every scalar within a JSON value, with its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{place}]")
    else:
        yield path, value
