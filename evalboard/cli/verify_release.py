"""`evalboard verify-release`: judge a release again using only its exported file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.errors import FAILED
from evalboard.cli.output import decide
from evalboard.cli.summary import draw_line
from evalboard.client.errors import WrongUse

if TYPE_CHECKING:
    from evalboard.core.archive import ReleaseBundle

CANNOT_SHOW = (
    "The file cannot show that its evidence is what the runs gave. Hold the sign-off's digest against a copy that you"
    " have from elsewhere: GET /api/v1/signoffs/ lists them."
)


def verify_release(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The file written by evalboard export --release.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Judge a release again from its exported file, and check digests and signatures, offline."""
    # Here, as it brings numpy, which no other command waits for.
    from evalboard.core.archive import ReleaseBundle

    try:
        with bundle.open("rb") as file:
            checked = _check(ReleaseBundle(file))
    except OSError as problem:
        raise WrongUse(f"{bundle} cannot be read: {problem.strerror}.") from problem
    decide(is_verdict=False)
    typer.echo(json.dumps(checked, ensure_ascii=False) if as_json else _render(checked))
    raise typer.Exit(FAILED if checked["problems"] else 0)


def _check(bundle: "ReleaseBundle") -> dict[str, Any]:
    """Return the bundle's facts and problems. Raises ArchiveDamaged for a changed file."""
    bundle.check()
    signed = list(bundle.sign_offs())
    change = _judge_again(bundle)
    problems = [f"The verdict is not what the evidence gives: {change}"] if change else []
    problems += [f"The sign-off of {each.person}: {each.problem}" for each in signed if each.problem]
    verdict = bundle.release["verdict"]
    return {
        "release": bundle.release["release"],
        "verdict": verdict["word"],
        "summary": verdict["document"]["summary"],
        "rules": verdict["document"].get("rules"),
        "sign_offs": [each._asdict() for each in signed],
        "problems": problems,
    }


def _judge_again(bundle: "ReleaseBundle") -> str:
    """Return how the verdict differs from what the evidence gives; "" where it does not."""
    from evalboard.core.archive import reading
    from evalboard.core.release import VERDICT_RULES, find_change, judge_release
    from evalboard.core.suite import parse_policy
    from evalboard.wording.release import write_verdict

    stored = bundle.release["verdict"]
    rules = stored["document"].get("rules")
    if rules != VERDICT_RULES:
        return f"it was taken by rules {rules}, and this program knows {VERDICT_RULES}; use the version that wrote it."
    with reading("its evidence cannot be judged"):
        policy = parse_policy(bundle.release["policy"]["settings"])
        runs = [{side: int(gate[side]) for side in ("baseline", "candidate")} for gate in bundle.release["gates"]]
        given = write_verdict(judge_release(bundle.evidence(), policy), runs)
        return find_change(stored["word"], stored["document"], given)


def _render(checked: dict[str, Any]) -> str:
    return "\n".join(map(draw_line, _lines(checked)))


def _lines(checked: dict[str, Any]) -> Iterator[str]:
    from evalboard.wording.results import describe_verdict

    yield f"Release {checked['release']}: {describe_verdict(checked['verdict'])}. {checked['summary']}"
    for each in checked["sign_offs"]:
        yield f"{each['person']}: {each['decision']}, {each['created_at']}, {each['covers']}. Digest {each['digest']}"
    if not checked["sign_offs"]:
        yield "It is not signed."
    yield from checked["problems"]
    if not checked["problems"]:
        yield f"Judged again from the evidence in this file, by rules {checked['rules']}: the same word and numbers."
        yield CANNOT_SHOW
