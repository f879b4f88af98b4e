"""`evalboard on-policy`: compare a sampler's logprobs with the trainer's, and fail if they differ."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import FAILED, INCONCLUSIVE, NO_SHIP
from evalboard.cli.forced.force import create_forced, follow_scoring, list_forced
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter
from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.client.log_imports import import_log
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.wording.on_policy import describe_figures, describe_on_policy, describe_worst, explain_no_kl

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.contract.forced import ForcedFigures, ForcedScoring
    from evalboard.core.rollouts import Rollout

CODES = {
    "bit_identical": 0,
    "on_policy": 0,
    "off_policy": NO_SHIP,
    "too_few_tokens": INCONCLUSIVE,
    "no_kl": INCONCLUSIVE,
}
N_SHOWN = 5  # of the worst positions


def on_policy(
    rollouts: Annotated[
        str, typer.Argument(metavar="ROLLOUTS|RUN", help="Rollouts with the sampler's logprobs, JSONL; or a run's id.")
    ],
    trainer: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The trainer's logprobs of the same tokens, if not in ROLLOUTS; JSONL."),
    ] = None,
    on: Annotated[
        str, typer.Option("--on", metavar="ENDPOINT", help="For a run: the endpoint whose engine replaces the trainer.")
    ] = "",
    profile: Annotated[str, typer.Option(help="With --on: the engine's profile; default: the run's.")] = "",
    max_kl: Annotated[float, typer.Option(min=0, help="The largest accepted KL, in nats per token.")] = 0.001,
    clip: Annotated[
        float, typer.Option(min=0, max=1, help="For rollouts: the clip range of the ratio around 1.")
    ] = 0.2,
    keep: Annotated[
        bool, typer.Option("--keep", help="For rollouts: store them as a run, with pages that show each token.")
    ] = False,
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the check as JSON.")] = False,
) -> None:
    """Check whether training is on-policy: how far a sampler's logprobs are from the trainer's."""
    if on:
        if trainer is not None:
            raise typer.BadParameter(
                "A run is scored by --on; rollouts are compared with --trainer.", param_hint="--on"
            )
        if keep:
            raise typer.BadParameter("A run is stored already.", param_hint="--keep")
        _check_run(parse_id(rollouts, "RUN"), on, profile, max_kl, give_up_after=give_up_after, as_json=as_json)
    if profile:
        raise typer.BadParameter("It needs --on.", param_hint="--profile")
    _check_files(Path(rollouts), trainer, max_kl, clip, keep=keep, as_json=as_json)


def _check_files(
    rollouts: Path, trainer: Path | None, max_kl: float, clip: float, *, keep: bool, as_json: bool
) -> NoReturn:
    """Judge two files, or one that has both sides; no server takes part but to keep them."""
    # Here, as it brings numpy, which no other command waits for.
    from evalboard.core.forced import check_on_policy
    from evalboard.core.rollouts import join_trainer

    try:
        sampled = _read(rollouts, "ROLLOUTS")
        if trainer is not None:
            sampled = join_trainer(sampled, _read(trainer, "--trainer"), field="--trainer")
        elif all(each.trainer is None for each in sampled):
            raise WrongUse("ROLLOUTS has no logprobs of a trainer: give them with --trainer FILE.")
        check = check_on_policy(sampled, max_kl=max_kl, clip_range=clip)
    except InvalidInput as problem:
        name, what = next(iter(problem.fields.items()), ("", problem.detail))
        raise WrongUse(f"{name}: {what}" if name else what) from problem
    worst = [
        describe_worst(f"response {each.response + 1}", each.position, each.log_ratio) for each in check.worst[:N_SHOWN]
    ]
    plain: dict[str, Any] = {
        "state": check.state,
        "max_kl": check.max_kl,
        "figures": check.figures.to_stored(),
        "worst": [each.to_json() for each in check.worst],
    }
    if token := plain["figures"]["worst"]:
        token["response"] = int(token.pop("answer"))
    if keep:
        stored = _store(rollouts, None if trainer is None else sampled)
        worst += [("see", f"{stored.value.url}, forced scoring {stored.value.id}")]
        plain |= {"forced": stored.json}
    _conclude(check.state, check.figures, max_kl, worst, as_json=plain if as_json else None)


def _store(rollouts: Path, joined: "Sequence[Rollout] | None") -> "Answer[ForcedScoring]":
    """Store rollouts as a run, and return the forced scoring with the trainer's logprobs.

    joined: stored in place of the file if the trainer's logprobs came from a second file.
    """
    from evalboard.core.rollouts import write_row

    with TemporaryDirectory() as folder, connect() as client:
        sent = rollouts
        if joined is not None:
            sent = Path(folder) / f"{rollouts.stem}.jsonl"
            sent.write_text("".join(f"{json.dumps(write_row(each))}\n" for each in joined))
        answer = import_log(client, [LogFile(sent.name, sent)], log_format="rollouts")
        scorings = list_forced(client, answer.value.runs[0].id)
        return next(each for each in scorings if each.value.is_reported)


def _check_run(run: str, on: str, profile: str, max_kl: float, *, give_up_after: float, as_json: bool) -> NoReturn:
    """Have a run's answers scored on an engine in the trainer's place, and judge that."""
    from evalboard.core.forced import judge_kl

    with connect() as client:
        body = {"endpoint": on, **({"profile": profile} if profile else {})}
        forced_id = create_forced(client, run, body).value.id
        answer = follow_scoring(client, forced_id, give_up_after=give_up_after)
    figures = answer.value.figures
    if answer.value.status != "finished" or figures is None:
        decide()
        why = answer.value.error or " ".join(answer.value.reading)
        typer.echo(f"Forced scoring {forced_id}: {answer.value.status}. {' '.join(why.split())}")
        raise typer.Exit(FAILED)
    scoring = answer.value
    state = judge_kl(figures.kl_k3, is_identical=figures.is_identical, max_kl=max_kl, are_draws=scoring.are_draws)
    token = figures.worst
    worst = [] if token is None else [describe_worst(f"answer {token.answer}", token.position, token.log_ratio)]
    why = explain_no_kl(scoring.reshaped_by, is_sampled=scoring.is_sampled)
    lines = [("why", why)] if state == "no_kl" else []
    lines += [("see", f"{answer.value.url}, forced scoring {forced_id}")]
    plain = {"state": state, "max_kl": max_kl, "forced": answer.json} if as_json else None
    _conclude(state, figures, max_kl, [*worst, *lines], as_json=plain)


def _conclude(
    state: str,
    figures: "ForcedFigures",
    max_kl: float,
    lines: Iterable[tuple[str, str]],
    *,
    as_json: dict[str, Any] | None,
) -> NoReturn:
    """Print the state in a sentence and a line for each number, or JSON, and exit with its code."""
    decide(is_verdict=True)
    if as_json is not None:
        typer.echo(json.dumps(as_json, ensure_ascii=False))
    else:
        typer.echo(describe_on_policy(state, figures, max_kl))
        for name, value in (*describe_figures(figures, are_draws=state != "no_kl"), *lines):
            typer.echo(f"  {name}: {value}")
    raise typer.Exit(CODES[state])


def _read(path: Path, field: str) -> "tuple[Rollout, ...]":
    from evalboard.core.rollouts import parse_rollouts

    try:
        with path.open(encoding="utf-8") as lines:
            return parse_rollouts(lines, field=field)
    except (OSError, UnicodeDecodeError) as problem:
        raise WrongUse(f"{path} cannot be read: {problem}.") from problem
