"""`evalboard endpoint`: add an endpoint, list endpoints, and check what an external server honours."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_body, parse_headers, parse_pair
from evalboard.cli.errors import FAILED
from evalboard.cli.lists import columns, print_list
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.program import as_typed
from evalboard.client.progress import probe_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.core.cost import parse_price
from evalboard.core.secret_names import variable_problem
from evalboard.wording.probe_states import DAILY_CHECK_COST
from evalboard.wording.run import clock, describe_price, describe_try

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.catalogue import Endpoint
    from evalboard.contract.probe import Probe

app = typer.Typer(help="Endpoints.", no_args_is_help=True)
PRICE_HELP = "The price of a million tokens; also cached=, reasoning= and currency= (default: USD)."
OWN = "Only without --base-url."
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]


@app.callback()
def endpoint() -> None:
    """Endpoints."""


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's slug: small letters, digits, dashes.")],
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME|PATH|OWNER/NAME@COMMIT",
            help="The model as the server names it. Without --base-url: its folder on the worker, or a hub repository.",
        ),
    ],
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="Such as https://api.example.com/v1. Default: a worker loads the model.")
    ] = "",
    adapter: Annotated[
        str,
        typer.Option(
            metavar="PATH|OWNER/NAME@COMMIT",
            help=f"A LoRA adapter: its folder on the worker, s3://bucket/prefix, or a hub repository. {OWN}",
        ),
    ] = "",
    dtype: Annotated[str, typer.Option(metavar="float32|bfloat16|float16", help=f"The model's dtype. {OWN}")] = "",
    quantization: Annotated[str, typer.Option(metavar="NAME", help=f"One that vLLM knows, such as fp8. {OWN}")] = "",
    max_model_len: Annotated[
        int | None, typer.Option(min=16, help=f"Tokens of prompt and answer together; default: 2048. {OWN}")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option(min=1, help=f"GPUs that share each layer; default: 1. {OWN}")
    ] = None,
    pipeline_parallel_size: Annotated[
        int | None, typer.Option(min=1, help=f"Groups of GPUs with a part of the layers each; default: 1. {OWN}")
    ] = None,
    key_env: Annotated[
        str, typer.Option(metavar="VAR", help="The worker's environment variable with the key; never the key itself.")
    ] = "",
    key_file: Annotated[
        str, typer.Option(metavar="PATH", help="Alternatively, a file on the worker with the key.")
    ] = "",
    api: Annotated[
        str, typer.Option(metavar="chat|completions|responses", help="The OpenAI API that the server offers.")
    ] = "chat",
    line: Annotated[str, typer.Option(help="A name for all versions of this model. Default: the model's name.")] = "",
    pool: Annotated[
        str, typer.Option(help="The pool of workers that make the calls; default: the pool named default.")
    ] = "",
    concurrency: Annotated[int | None, typer.Option(min=1, max=64, help="Maximum calls in flight; default: 8.")] = None,
    calls_per_minute: Annotated[
        int | None, typer.Option(min=1, help="Maximum calls per minute over all workers; default: no limit.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="A constant header; can be repeated.")
    ] = None,
    header_env: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VAR'", help="A header with a worker's variable as value; can be repeated."),
    ] = None,
    extra_body: Annotated[
        str, typer.Option(metavar="JSON|@FILE", help="Extra fields for the body of every call, as a JSON object.")
    ] = "",
    reference: Annotated[
        str, typer.Option(metavar="SLUG", help="Your own endpoint with the same weights, as reference.")
    ] = "",
    bypass: Annotated[
        str, typer.Option(metavar="SLUG", help="For a gateway: the endpoint that reaches the model directly.")
    ] = "",
    rescore: Annotated[
        bool, typer.Option(help="Run its baselines' reference sets after a rotation; costs calls.")
    ] = False,
    daily_check: Annotated[
        bool, typer.Option(help=f"Check daily which parameters it honours, from its first use on. {DAILY_CHECK_COST}")
    ] = False,
    price: Annotated[str, typer.Option(metavar="input=2.50,output=10", help=PRICE_HELP)] = "",
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check what it honours, if a worker can; up to 26 short calls.")
    ] = True,
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Add an external server and check what it honours, or without --base-url a model for workers."""
    if key_env and key_file:
        raise typer.BadParameter("The key is read from one place; give one of the two.", param_hint="--key-file")
    if problem := variable_problem(key_env, allowed=None) if key_env else None:
        # Here, so that a key which slipped goes over no wire.
        raise typer.BadParameter(problem, param_hint="--key-env")
    named = parse_headers(header or [], "--header") | {
        name: {"env": variable} for name, variable in parse_headers(header_env or [], "--header-env").items()
    }
    body: dict[str, Any] = {"slug": name, "engine": "openai" if base_url else "vllm"}
    body["model"] = {"name": model} if base_url else _parse_model(model)
    body["model"] |= {"adapter": adapter} if adapter else {}
    chosen: dict[str, Any] = {"base_url": base_url, "api": "" if api == "chat" else api, "auth": key_env or key_file}
    chosen |= {"rescores": rescore, "daily_check": daily_check, "calls_per_minute": calls_per_minute, "pool": pool}
    chosen |= {"concurrency": concurrency, "reference": reference, "bypass": bypass, "dtype": dtype}
    chosen |= {"line": line or ("" if base_url else body["model"].get("path", model).rstrip("/").rsplit("/", 1)[-1])}
    chosen |= {"quantization": quantization, "max_model_len": max_model_len}
    chosen |= {"tensor_parallel_size": tensor_parallel_size, "pipeline_parallel_size": pipeline_parallel_size}
    body |= {field: value for field, value in chosen.items() if value}
    body |= {"headers": named} if named else {}
    body |= {"price": parse_price(price)} if price else {}
    body |= {"extra_body": parse_body(extra_body)} if extra_body else {}
    with connect() as client:
        answer = client.create_endpoint(body)
        added = answer.value
        if not as_json:
            typer.echo(_render_added(added))
        is_checked = check and base_url != "" and _has_worker(client, added.pool)
        probe = _check(client, {"endpoint": name}, give_up_after=give_up_after) if is_checked else None
    if as_json:
        typer.echo(json.dumps(answer.json | {"check": probe and probe.json}, ensure_ascii=False))
    elif base_url:
        typer.echo(render_check(probe.value) if probe else _render_unchecked(added, is_wanted=check))


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's slug.")],
    ending: Annotated[
        list[str] | None,
        typer.Option(metavar="WORD=complete", help="What a finish reason means: complete, cut, filtered or refused."),
    ] = None,
    ignore_fingerprint: Annotated[
        bool | None,
        typer.Option(
            "--ignore-fingerprint/--read-fingerprint",
            help="Whether system_fingerprint differs per call and identifies no server.",
        ),
    ] = None,
    price: Annotated[str, typer.Option(metavar="input=2.50,output=10|none", help=PRICE_HELP)] = "",
    as_json: AsJson = False,
) -> None:
    """Set an endpoint's price, what finish reasons mean, and whether fingerprints identify servers."""
    answer = None
    with connect() as client:
        if ending:
            answer = client.set_endings(name, dict(parse_pair(text, "WORD=ENDING", "--ending") for text in ending))
        if ignore_fingerprint is not None:
            answer = client.ignore_fingerprint(name, ignores=ignore_fingerprint)
        if price:
            answer = client.set_price(name, None if price == "none" else parse_price(price))
    if answer is None:
        hint = "Give what to set: --price, --ending or --ignore-fingerprint."
        raise typer.BadParameter(hint, param_hint="--price")
    set_ = [f"{word} means {meaning}" for word, meaning in (answer.value.endings if ending else {}).items()]
    if ignore_fingerprint is not None:
        set_.append(f"fingerprints are {'ignored' if answer.value.ignores_fingerprint else 'read'}")
    if price:
        known = answer.value.price
        set_.append(describe_price(known.to_json()) if known else "the price is not known")
    text = f"Endpoint {name}: {', '.join(set_)}."
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else as_typed(text))


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's slug.")], as_json: AsJson = False
) -> None:
    """Call a paused endpoint again at once, not only when its pause ends."""
    with connect() as client:
        answer = client.try_endpoint(name)
    text = as_typed(describe_try(name))
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else text)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the endpoints."""
    empty = as_typed("There is no endpoint yet; evalboard endpoint add makes one.")
    with connect() as client:
        print_list(client.endpoints(), _list_cells, empty=empty, as_json=as_json)


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's slug.")],
    profile: Annotated[str, typer.Option(help="The profile to use; default: chosen by the server.")] = "",
    wait_: Annotated[bool, typer.Option("--wait", help="Wait for the check, and print the table.")] = False,
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Find out which parameters an endpoint honours. Without --wait it prints where the check is and ends."""
    body = {"endpoint": name} | ({"profile": profile} if profile else {})
    with connect() as client:
        answer = _check(client, body, give_up_after=give_up_after if wait_ else None)
    if wait_:
        decide()
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else render_check(answer.value))
    is_unknown = answer.value.finding is None or answer.value.finding.state == "incomplete"
    raise typer.Exit(FAILED if wait_ and is_unknown else 0)


def _has_worker(client: "RestClient", pool: str) -> bool:
    """Return whether a worker of the pool is alive, which could make the check."""
    rows = (answer.value for answer in client.workers())
    return any(row.pool == pool and row.state not in ("silent", "stopped") for row in rows)


def _check(client: "RestClient", body: dict[str, Any], *, give_up_after: float | None) -> "Answer[Probe]":
    """Start a check, and follow it to its end unless give_up_after is None."""
    answer = client.create_probe({**body, "kind": "capability"})
    if give_up_after is None:
        return answer
    probe_id = answer.value.id
    return follow_to_end(
        lambda: client.probe(probe_id),
        probe_progress,
        sentence=f"Check {probe_id} goes on.",
        come_back=f"evalboard probe --show {probe_id}",
        give_up_after=give_up_after,
    )


def render_check(probe: "Probe") -> str:
    """Return where a check is, and once it has ended its sentence and its table, in columns."""
    title = f"Check {probe.id} of {probe.endpoint}, profile {probe.profile}: {probe.status}. {probe.url}"
    if probe.finding is None:
        expected = [probe.expected_cost.text] if probe.expected_cost else []
        return "\n".join([title, *expected, *([" ".join(probe.error.split())] if probe.error else [])])
    from evalboard.wording.capability import (
        LABELS,
        describe_fit,
        describe_parameter,
        describe_state_of_parameter,
        suggest_profile,
    )

    if not (seen := probe.finding.numbers.get("rows", [])):
        return f"{title}\n{probe.finding.sentence}"
    cost = [f"It cost {probe.cost.text}."] if probe.cost else []
    rows = [
        (LABELS.get(row["parameter"], row["parameter"]), describe_state_of_parameter(row), describe_parameter(row))
        for row in seen
    ]
    following = f"evalboard run sample --endpoint {probe.endpoint} --profile {suggest_profile(seen)} --wait"
    return "\n".join([title, probe.finding.sentence, *columns(rows), *cost, describe_fit(seen), as_typed(following)])


def _parse_model(text: str) -> dict[str, str]:
    """Return the model that a worker loads: a folder, or a repository on a hub with its commit."""
    repo, is_repo, revision = text.partition("@")
    return {"repo": repo, "revision": revision} if is_repo and not text.startswith("/") else {"path": text}


def _render_added(endpoint: "Endpoint") -> str:
    if endpoint.base_url is None:
        return f"Endpoint {endpoint.slug} is there: {endpoint.about}, loaded by the workers of pool {endpoint.pool}."
    key = f"the key is read from {endpoint.auth} on the worker" if endpoint.auth else "without a key"
    first = f"Endpoint {endpoint.slug} is there: {endpoint.model.address} at {endpoint.base_url}, {key}."
    daily = f"\nIt is checked daily from its first run or probe on. {DAILY_CHECK_COST}" if endpoint.daily_check else ""
    return as_typed(f"{first}{daily}")


def _render_unchecked(endpoint: "Endpoint", *, is_wanted: bool) -> str:
    why = f"Pool {endpoint.pool} has no worker, so it was not checked. " if is_wanted else ""
    return as_typed(f"{why}See what it honours: evalboard endpoint check {endpoint.slug} --wait")


def _list_cells(each: "Endpoint") -> tuple[str, ...]:
    address = each.base_url or each.dtype
    return each.slug, each.engine, each.model.address, address, f"pool {each.pool}", _rest(each)


def _rest(endpoint: "Endpoint") -> str:
    return f"paused until {clock(endpoint.rests_until, None)}" if endpoint.rests_until else ""
