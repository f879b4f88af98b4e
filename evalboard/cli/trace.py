"""`evalboard trace`: record a log from any server with OpenAI's protocol, without Evalboard's server."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_body, parse_headers
from evalboard.cli.errors import FAILED, INTERRUPTED, CommandError
from evalboard.cli.output import decide
from evalboard.client.errors import WrongUse
from evalboard.client.program import as_typed
from evalboard.client.progress import WaitProgress
from evalboard.client.waiting import GIVE_UP_SECONDS, Follower, make_follower
from evalboard.wording.numbers import counted

if TYPE_CHECKING:
    from evalboard.calling.calls import EndpointRests
    from evalboard.calling.client import ApiClient
    from evalboard.calling.recording import Recording
    from evalboard.calling.trace_file import TraceFile

RESPONSE_SECONDS = 600.0
LONGEST_REST_SECONDS = 10.0  # a server that is starting is asked again so often


def trace(
    prompts: Annotated[
        Path, typer.Argument(metavar="PROMPTS", help="A suite, or lines with prompt or messages; - for standard input.")
    ],
    base_url: Annotated[str, typer.Option(metavar="URL", help="Such as http://127.0.0.1:8000/v1.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="The model, as the server names it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The log; one that is there is continued.")
    ],
    api: Annotated[str, typer.Option(metavar="chat|completions|responses", help="How it is called.")] = "chat",
    temperature: Annotated[float, typer.Option(min=0, max=10)] = 0.0,
    top_logprobs: Annotated[int, typer.Option(min=0, max=20, help="Alternatives at each position.")] = 5,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Of an answer; the suite's unless set, 256 without a suite.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="What the seeds of all calls follow from.")] = 42,
    repeats: Annotated[int, typer.Option(min=1, max=100, help="Answers to each case.")] = 1,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="Calls in flight.")] = 8,
    key_env: Annotated[
        str, typer.Option(metavar="VAR", help="The variable that holds the key; never the key itself.")
    ] = "",
    header: Annotated[
        list[str] | None, typer.Option(metavar="'NAME: VALUE'", help="A constant header; may be given several times.")
    ] = None,
    header_env: Annotated[
        list[str] | None,
        typer.Option(metavar="'NAME: VAR'", help="A header whose value a variable holds; several times."),
    ] = None,
    extra_body: Annotated[
        str, typer.Option(metavar="JSON|@FILE", help="Fields that go into the body of every call, as one object.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that a call may take.")] = RESPONSE_SECONDS,
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop.")
    ] = GIVE_UP_SECONDS,
    again: Annotated[bool, typer.Option("--again", help="Overwrite the file in place of continuing it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was recorded as JSON.")] = False,
) -> None:
    """Record a log of prompts from any OpenAI-compatible server. No server of Evalboard is needed."""
    if output.exists() and prompts.exists() and output.samefile(prompts):
        raise WrongUse(f"{output} holds the prompts; name another file for the answers.")
    recording, client = _plan(
        prompts,
        server={"base_url": base_url, "model": model, "api": api},
        sampling={"temperature": temperature, "logprobs": top_logprobs},
        max_tokens=max_tokens,
        counts={"seed": seed, "n_repeats": repeats, "concurrency": concurrency},
        key_env=key_env,
        headers=(header or [], header_env or []),
        extra_body=extra_body,
        timeout=timeout,
    )
    from evalboard.calling.calls import EndpointRefused
    from evalboard.calling.trace_file import TraceFile

    file = TraceFile(output, recording, is_new=again)
    try:
        with file:
            was_whole = len(file.done) >= recording.n_calls
            if not was_whole:
                client.open()
                _record(client, recording, file, give_up_after=give_up_after)
    except EndpointRefused as refusal:
        from evalboard.wording.run import as_sentence

        raise CommandError(f"{as_sentence(refusal.detail)} {_describe_rest(recording, file)}") from None
    except OSError as problem:
        raise CommandError(f"{output} cannot be written: {problem.strerror}.") from problem
    except KeyboardInterrupt:
        typer.echo(as_typed(f"Interrupted. {_describe_rest(recording, file)}"), err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        client.stop()
    is_whole = len(file.done) >= recording.n_calls
    decide()
    if as_json:
        typer.echo(json.dumps(_to_json(recording, file)))
    else:
        typer.echo(_render(recording, file) if is_whole else _describe_rest(recording, file))
    if was_whole:
        typer.echo("It was complete, and no call was made. --again overwrites it.", err=True)
    raise typer.Exit(0 if is_whole else FAILED)


def _plan(
    prompts: Path,
    *,
    server: dict[str, str],
    sampling: dict[str, Any],
    max_tokens: int | None,
    counts: dict[str, int],
    key_env: str,
    headers: tuple[list[str], list[str]],
    extra_body: str,
    timeout: float,
) -> "tuple[Recording, ApiClient]":
    """Return the recording and the client for it. Raises typer.BadParameter and WrongUse."""
    from functools import partial
    from urllib.parse import urlsplit

    from evalboard.calling.client import ApiClient, CalledServer
    from evalboard.calling.endpoint_fields import clean_base_url, extra_body_problems, header_problems
    from evalboard.calling.headers import read_headers, read_variable
    from evalboard.calling.recording import Recording
    from evalboard.calling.request import PATHS
    from evalboard.cli.suite_file import load_prompts
    from evalboard.core.profile import DEFAULT_PROFILES
    from evalboard.core.secret_names import read_key_patterns, variable_problem

    hosts = frozenset({urlsplit(server["base_url"]).hostname or ""})  # who types an address names its host
    server["base_url"], problem = clean_base_url(server["base_url"], hosts=hosts)
    try:
        keys = read_key_patterns(os.environ.get("EVALBOARD_ENDPOINT_KEYS", "").split(","))
    except ValueError as problem:
        raise typer.BadParameter(str(problem), param_hint="EVALBOARD_ENDPOINT_KEYS") from None
    given: dict[str, Any] = parse_headers(headers[0], "--header")
    given |= {name: {"env": variable} for name, variable in parse_headers(headers[1], "--header-env").items()}
    body = parse_body(extra_body) if extra_body else {}
    problems = {
        "--base-url": problem,
        "--key-env": variable_problem(key_env, allowed=keys) if key_env else None,
        "--api": None if server["api"] in PATHS else f"Must be one of: {', '.join(PATHS)}.",
        **header_problems(given, auth=key_env, keys=keys),
        **extra_body_problems(body),
    }
    for name, words in problems.items():
        if words:
            raise typer.BadParameter(words, param_hint=name)
    suite = load_prompts(prompts)
    usual = DEFAULT_PROFILES["pinned"]["settings"]["sampling"]
    sampling = {name: value for name, value in usual.items() if name != "seed"} | sampling
    sampling |= {"max_tokens": max_tokens or suite.max_tokens, "stop": list(suite.stop)}
    called = CalledServer(**server, hosts=hosts, extra_body=body, name=server["base_url"])
    recording = Recording(suite=suite, server=called, sampling=sampling, **counts)
    read = partial(read_headers, key_env, given, partial(read_variable, allowed=keys))
    client = ApiClient(
        called,
        read,
        response_seconds=timeout,
        concurrency=recording.concurrency,
        longest_rest_seconds=LONGEST_REST_SECONDS,
    )
    return recording, client


def _record(client: "ApiClient", recording: "Recording", file: "TraceFile", *, give_up_after: float) -> None:
    """Make the remaining calls. Raises EndpointRefused.

    A server that stops answering is tried again until `give_up_after` seconds have passed without an answer; each
    remaining call then failed.
    """
    from contextlib import closing

    from evalboard.calling.calls import EndpointRests
    from evalboard.core.trace import Failed

    requests = recording.list_requests(file.done)
    answered_at, n_answered, ended = time.monotonic(), len(file.done), set[int]()
    with make_follower() as follower:
        _tell(follower, recording, file, len(file.done), time.monotonic())
        while requests := [request for request in requests if request.case_index not in ended]:
            began_at, n_before = time.monotonic(), len(file.done)
            try:
                with closing(client.decode(requests, is_answered=bool(file.done))) as outcomes:
                    for outcome in outcomes:
                        file.add(outcome)
                        ended.add(outcome.case_index)
                        _tell(follower, recording, file, n_before, began_at)
            except EndpointRests as rest:
                if len(file.done) > n_answered:
                    n_answered, answered_at = len(file.done), time.monotonic()
                if time.monotonic() + rest.seconds - answered_at > give_up_after:
                    if not file.done:
                        raise CommandError(f"No call was answered. {rest.detail}") from None
                    for request in requests:
                        if request.case_index not in ended:
                            file.add(Failed(request.case_index, rest.code, rest.detail))
                    return
                _tell(follower, recording, file, n_before, began_at, rest=rest)
                time.sleep(rest.seconds)


def _tell(
    follower: Follower,
    recording: "Recording",
    file: "TraceFile",
    n_before: int,
    began_at: float,
    rest: "EndpointRests | None" = None,
) -> None:
    from datetime import UTC, datetime, timedelta

    from evalboard.wording.run import describe_pause

    n_done, seconds = len(file.done), time.monotonic() - began_at
    n_left = recording.n_calls - n_done
    pause = ""
    if rest is not None:
        until = datetime.now(UTC) + timedelta(seconds=rest.seconds)
        pause = describe_pause(n_failures=rest.n_failures, reason=rest.detail, until=until, zone=None)
    follower.tell(
        WaitProgress(
            file.path.name,
            "answers",
            "recording",
            n_done,
            recording.n_calls,
            is_terminal=False,
            eta_seconds=n_left * seconds / (n_done - n_before) if n_done > n_before else None,
            note=f"{counted(file.n_failed, 'failed call')}." if file.n_failed else "",
            pause=pause,
        )
    )


def _describe_rest(recording: "Recording", file: "TraceFile") -> str:
    """Say what an incomplete file lacks, and how to go on."""
    from evalboard.wording.run import as_sentence

    if not (file.done or file.n_failed):
        return f"{file.path} was not written."
    failed = ""
    if file.n_failed:
        reason = as_sentence(file.first_reason)
        failed = f" {counted(file.n_failed, 'call')} failed; each has a line with the reason. The first: {reason}"
    where = f"{file.path} holds {len(file.done):,} of {counted(recording.n_calls, 'answer')}"
    return f"{where}.{failed} The same command goes on with it."


def _render(recording: "Recording", file: "TraceFile") -> str:
    from evalboard.core.scoring import is_external
    from evalboard.wording.scorers import ONLY_A_WORKER

    suite, server = recording.suite, recording.server
    n = f"{counted(len(suite.cases), 'case')}, {counted(recording.n_repeats, 'repeat')}"
    lines = [f"{file.path} holds {counted(len(file.done), 'answer')} of {server.model} at {server.base_url}: {n}."]
    own = [each for each in (suite.scorer, *(case.scorer for case in suite.cases)) if each is not None]
    if is_external({"default": None, "cases": dict(enumerate(own))}):
        lines.append(f"No answer has a score by the suite's own scorer, since {ONLY_A_WORKER.format(log=file.path)}")
    lines += [
        f"The server does not take {name}: {counted(k, 'call')} went without it." for name, k in file.left_out.items()
    ]
    return "\n".join(lines)


def _to_json(recording: "Recording", file: "TraceFile") -> dict[str, Any]:
    n = {"n_calls": recording.n_calls, "n_answers": len(file.done), "n_failed": file.n_failed}
    return {"file": str(file.path), **n, "left_out": dict(file.left_out), "settings": recording.settings}
