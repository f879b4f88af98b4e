"""`evalboard scorer`: a team's own scorers, what they would change, and files to begin one with."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.lists import columns, print_list
from evalboard.cli.output import printable
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.client.program import as_typed
from evalboard.client.progress import rescored_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.wording.numbers import counted, fixed, signed
from evalboard.wording.scorers import DIGEST_CHARS, describe_rescored, name_scorer

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.suite import OwnScorer, RescoredCase, RescoredRun

CASES_SHOWN = 20
MAX_SHOWN = 60  # characters of an answer or a reason
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,78}[A-Za-z0-9])?")  # as packages may be called
ScorerNamed = Annotated[
    str, typer.Option("--scorer", metavar="NAME|JSON", help="A scorer on a worker, a kind such as contains, or JSON.")
]

app = typer.Typer(help="Scorers of your own.", no_args_is_help=True)


@app.callback()
def scorer() -> None:
    """Scorers of your own: what workers have, what one would change, and a new one."""


@app.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print the scorers as JSON.")] = False) -> None:
    """List the scorers of your own that workers have."""
    with connect() as client:
        print_list(
            client.scorers(), _cells, empty="No worker has a scorer of yours; scorer new begins one.", as_json=as_json
        )


@app.command("test")
def try_on_run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    scorer: ScorerNamed,
    run: Annotated[str, typer.Option(help="The run to score; default: the suite's newest finished one.")] = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print what would change, with the cases, as JSON.")] = False,
) -> None:
    """Score a run again, and print what would change if that scorer decided. The suite keeps its own."""
    with connect() as client:
        spec = json.loads(resolve(client, scorer))
        run_id = run or _newest_run(client, suite)
        made = client.rescore(run_id, {"scorer": spec}).value
        answer = follow_to_end(
            lambda: client.rescored(run_id, made.scorer.id),
            rescored_progress,
            sentence="The scoring goes on.",
            come_back=f"evalboard scorer test {suite} --run {run_id} --scorer …",
            give_up_after=give_up_after,
        )
        cases = list(client.rescored_cases(run_id, made.scorer.id))
        own = name_scorer(client.suite(suite, version=str(answer.value.suite_version)).value.scorer)
    if as_json:
        typer.echo(json.dumps({**answer.json, "cases": [case.json for case in cases]}, ensure_ascii=False))
    else:
        typer.echo(as_typed(_render(answer.value, own, [case.value for case in cases])))


@app.command("judge-again")
def judge_again(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run that a judge has scored.")],
    scorer: Annotated[
        str, typer.Option("--scorer", metavar="JSON", help="The judge; default: that of the run's suite.")
    ] = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print what changed, as JSON.")] = False,
) -> None:
    """Let the judge of a run, as it is now, score its answers once more. Earlier scores stay."""
    with connect() as client:
        named = {"scorer": json.loads(resolve(client, scorer))} if scorer else {}
        made = client.rescore(run, {**named, "judge_again": True}).value
        answer = follow_to_end(
            lambda: client.rescored(run, made.scorer.id),
            rescored_progress,
            sentence="The judge goes on.",
            come_back=f"evalboard wait {run}",
            give_up_after=give_up_after,
        )
        judgings = [each for each in client.judgings(run).value.results if each.scorer == made.scorer.digest]
        version = client.suite(answer.value.suite, version=str(answer.value.suite_version)).value
    if as_json:
        typer.echo(
            json.dumps(
                {**answer.json, "judgings": [each.model_dump(mode="json") for each in judgings]}, ensure_ascii=False
            )
        )
        return
    changes = describe_rescored(answer.value, name_scorer(version.scorer))
    typer.echo(as_typed("\n".join([*(each.text for each in judgings), *changes])))


@app.command()
def adopt(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    scorer: ScorerNamed,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suite version as JSON.")] = False,
) -> None:
    """Make a scorer the suite's: a new version of the same cases."""
    with connect() as client:
        answer = client.adopt_scorer(suite, {"scorer": json.loads(resolve(client, scorer))})
    stored = answer.value
    state = "stored" if answer.is_new else "was there already"
    sentence = f"{stored.slug} v{stored.version} {state}, scored by {name_scorer(stored.scorer)}. {stored.url}"
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else sentence)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What suites call it.")],
    command: Annotated[bool, typer.Option("--command", help="Write a program, and no Python package.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the names of the files as JSON.")] = False,
) -> None:
    """Write a working scorer to begin with: a package with its test, or a program."""
    from evalboard.cli.scorer_files import write_package, write_program

    if not NAME.fullmatch(name):
        rule = "1 to 80 letters, digits, '.', '_' or '-', with a letter or digit at both ends"
        raise WrongUse(f"{name} is no name: {rule}.")
    if Path(name).exists():
        raise WrongUse(f"{name} is there already, and nothing was written.")
    files = [write_program(Path(name))] if command else write_package(Path(name))
    typer.echo(json.dumps([str(file) for file in files]) if as_json else "\n".join(f"wrote {file}" for file in files))


def resolve(client: "RestClient", text: str) -> str:
    """Return a scorer as JSON, from JSON, a kind of ours or a worker's scorer. Raises WrongUse."""
    from evalboard.core.scoring import EXTERNAL, KINDS

    if text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except ValueError as problem:
            raise WrongUse(f"The scorer is no JSON: {problem}.") from None
        return text
    if text in KINDS and text not in EXTERNAL:
        return json.dumps({"kind": text})
    there = [each.value for each in client.scorers()]
    kinds = {each.kind for each in there if each.name == text}
    if not kinds:
        names = ", ".join(sorted({each.name for each in there if each.digest})) or "none"
        text = f"{text} is no kind of scorer, and no worker has a scorer of that name; they have: {names}"
        raise WrongUse(f"{text}. A worker looks for new ones every 15 seconds.")
    if len(kinds) > 1:
        raise WrongUse(f'Workers have {text} of two kinds. Name one: {{"kind": "command", "name": "{text}"}}.')
    return json.dumps({"kind": kinds.pop(), "name": text})


def _newest_run(client: "RestClient", suite: str) -> str:
    newest = next(iter(client.runs(suite=suite, status="finished", page_size="1")), None)
    if newest is None:
        raise WrongUse(f"Suite {suite} has no finished run; start one first: evalboard run {suite}")
    return newest.value.id


def _cells(scorer: "OwnScorer") -> tuple[str, ...]:
    problems = {f"{each.worker}: {each.problem}" for each in scorer.workers if each.problem}
    versions = ", ".join(sorted({each.version for each in scorer.workers if each.version}))
    n_workers = counted(len(scorer.workers), "worker")
    return scorer.kind, scorer.name, scorer.digest[:DIGEST_CHARS], versions, n_workers, "; ".join(sorted(problems))


def _render(rescored: "RescoredRun", own: str, cases: "list[RescoredCase]") -> str:
    lines = list(describe_rescored(rescored, own))
    if rescored.n_cases and rescored.points is not None:
        lines.append(f"  scorer  {counted(rescored.n_cases, 'case')}  {signed(rescored.points)} points")
    if why := Counter(case.reason_after for case in cases if case.reason_after and None in case.after):
        [(reason, _)] = why.most_common(1)  # whole: its end says what to do
        lines.append(f"  {printable(' '.join(reason.split()))}")
    rows = [_case_cells(case) for case in cases[:CASES_SHOWN]]
    lines += ["", *columns(rows)] if rows else []
    lines += [f"… and {counted(len(cases) - CASES_SHOWN, 'more case')}"] if len(cases) > CASES_SHOWN else []
    return "\n".join(lines)


def _case_cells(case: "RescoredCase") -> tuple[str, ...]:
    place = next(at for at, pair in enumerate(zip(case.before, case.after, strict=True)) if pair[0] != pair[1])
    scores = f"{_score(case.before[place])} → {_score(case.after[place])}"
    moved = "–" if case.points is None else signed(case.points)
    return case.case, moved, scores, _short(case.answer, quoted=True), _short(case.reason_after)


def _score(value: float | None) -> str:
    return "–" if value is None else f"{fixed(value, 2)}".rstrip("0").rstrip(".")


def _short(text: Any, *, quoted: bool = False) -> str:
    """Return one line of a text. quoted: as JSON where a line would fold its spaces."""
    words = " ".join(str(text or "").splitlines())
    if quoted and text and " ".join(words.split()) != text:
        words = json.dumps(text, ensure_ascii=False)
    words = printable(words)
    return words if len(words) <= MAX_SHOWN else f"{words[:MAX_SHOWN]}…"
