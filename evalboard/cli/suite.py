"""`evalboard suite push`: a file of cases becomes a suite's newest version."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.errors import FAILED, INTERRUPTED
from evalboard.cli.lists import print_list
from evalboard.cli.output import printable
from evalboard.cli.scorer import resolve
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.progress import trial_progress
from evalboard.client.waiting import GIVE_UP_SECONDS, follow_transfer, make_follower
from evalboard.wording.numbers import counted
from evalboard.wording.run import describe_score

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.client.suite_parts import SuiteLines
    from evalboard.contract.suite import SuiteRow, SuiteVersion, Trial

MappingNamed = Annotated[str, typer.Option(metavar="NAME|FILE", help="Convert another tool's JSONL with this mapping.")]
ScorerGiven = Annotated[
    str,
    typer.Option(
        metavar="KIND|NAME|JSON", help="The scorer of cases that name none, such as contains; needed with CSV."
    ),
]
ColumnsNamed = Annotated[
    str,
    typer.Option(
        metavar="FIELD=COLUMN,…",
        help="The columns of CSV, such as prompt=question,target=expected; default: the usual names.",
    ),
]

app = typer.Typer(help="Suites.", no_args_is_help=True)


@app.callback()
def suite() -> None:
    """Suites."""


@app.command()
def push(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON, JSONL with one case per line, or CSV.")],
    slug: Annotated[str, typer.Option(help="The suite's slug; default: from the document, else the file name.")] = "",
    title: Annotated[str, typer.Option(help="The suite's title; default: from the document, else the slug.")] = "",
    mapping: MappingNamed = "",
    scorer: ScorerGiven = "",
    columns: ColumnsNamed = "",
    give_up_after: Annotated[
        float, typer.Option(min=0, help="For a large file: give up after so many seconds without an answer.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suite version as JSON.")] = False,
) -> None:
    """Store a suite, or find that its content is stored already."""
    # Here, and the scorers with it, which check a case's options: no other command waits for them.
    from evalboard.cli.suite_file import is_large, load_document, open_lines

    with connect() as client:
        options = {"mapping": mapping, "scorer": scorer and resolve(client, scorer), "columns": columns}
        if is_large(file):
            with open_lines(file, slug=slug, title=title, **options) as lines:
                answer = _send(client, lines, give_up_after=give_up_after)
        else:
            answer = client.push_suite(load_document(file, slug=slug, title=title, **options))
    stored = answer.value
    state = "stored" if answer.is_new else "was there already"
    sentence = f"{stored.slug} v{stored.version} {state}: {counted(stored.n_cases, 'case')}. {stored.url}"
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else sentence)


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print the suites as JSON.")] = False) -> None:
    """List the suites, each with its newest version and run."""
    with connect() as client:
        print_list(client.suites(), _list_cells, empty="There is no suite yet; suite push stores one.", as_json=as_json)


@app.command()
def show(
    slug: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    version: Annotated[int | None, typer.Option(min=1, help="The version's number; default: the newest.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suite version as JSON.")] = False,
) -> None:
    """Show a version of a suite: its cases, scorer and digest."""
    with connect() as client:
        answer = client.suite(slug, **({} if version is None else {"version": str(version)}))
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render_version(answer.value))


@app.command("try")
def try_case(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A suite, as `push` takes it. It is not stored.")],
    endpoint: Annotated[str, typer.Option(help="The endpoint's slug.")],
    case: Annotated[str, typer.Option(help="The case's id; default: the first.")] = "",
    profile: Annotated[str, typer.Option(help="The profile's slug.")] = "pinned",
    mapping: MappingNamed = "",
    scorer: ScorerGiven = "",
    columns: ColumnsNamed = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trial as JSON.")] = False,
) -> None:
    """Send one case to an endpoint once, and show its answer, its score and why."""
    from evalboard.cli.suite_file import load_document

    with connect() as client:
        scorer = scorer and resolve(client, scorer)
        document = load_document(file, mapping=mapping, scorer=scorer, columns=columns)
        body = {"suite": document, "case": case, "endpoint": endpoint, "profile": profile}
        trial_id = client.create_trial(body).value.id
        answer = follow_to_end(
            lambda: client.trial(trial_id),
            trial_progress,
            sentence=f"Trial {trial_id} goes on.",
            come_back=f"GET /api/v1/trials/{trial_id}/",
            give_up_after=give_up_after,
        )
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render_trial(answer.value))
    raise typer.Exit(0 if answer.value.answer else FAILED)


def _list_cells(suite: "SuiteRow") -> tuple[str, ...]:
    newest = f"newest run {suite.last_run}" if suite.last_run else "no run"
    counts = counted(suite.n_cases, "case"), counted(suite.n_runs, "run")
    return suite.slug, f"v{suite.version}", *counts, newest, printable(suite.title)


def _render_version(suite: "SuiteVersion") -> str:
    lines = [
        f"{suite.slug} v{suite.version}, {printable(suite.title)}: {counted(suite.n_cases, 'case')}.",
        f"At most {suite.max_tokens} tokens each. Digest {suite.digest}.",
        f"Scorer: {json.dumps(suite.scorer, ensure_ascii=False, sort_keys=True)}",
        suite.url,
    ]
    return "\n".join(lines)


def _render_trial(trial: "Trial") -> str:
    if trial.answer is None:
        return f"Case {trial.case} has no answer: {printable(trial.error or '')}"
    verdict = f"Case {trial.case} is {describe_score(trial.answer.score)}: {printable(trial.answer.reason)}"
    return f"{verdict}\n\n{printable(trial.answer.text)}"


def _send(client: "RestClient", lines: "SuiteLines", *, give_up_after: float) -> "Answer[SuiteVersion]":
    """Send a large suite in parts, and wait until it is read."""
    from evalboard.client.suite_parts import AGAIN, read_upload, send_parts

    try:
        with follow_transfer(f"suite {lines.slug}") as transfer:
            upload_id = send_parts(client, lines, tell=transfer.tell, give_up_after=give_up_after)
        with make_follower() as follower:
            return read_upload(client, upload_id, follower, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(AGAIN, err=True)
        raise typer.Exit(INTERRUPTED) from None
