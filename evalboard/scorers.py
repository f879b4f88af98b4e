"""What a team writes its own scorer with (docs/suites.md): `Case`, `Response`, `Score` and `serve`.

A package names its scorer in the entry point group `evalboard.scorers`: a function `score(case, response)`, or one with
`options` as a third argument. A worker runs this file in a confined process. A program in Python may call `serve`. It
imports the standard library alone, so that a process starts fast.
"""

import importlib
import inspect
import json
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

GROUP = "evalboard.scorers"  # of entry points


@dataclass(frozen=True, slots=True)
class Case:
    """A case of the suite.

    messages: as sent. target: what a right answer is, None where the suite has none.
    """

    id: str
    messages: Sequence[Mapping[str, Any]] = ()
    target: Any = None
    tools: Sequence[Mapping[str, Any]] | None = None
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Response:
    """A response to a case.

    text: the answer's words. calls: the tool calls beside them, each with `name` and `arguments`. thinking: what the
    model thought before, None where nothing is kept apart. finish_reason: the server's word for how it ended.
    """

    text: str
    calls: Sequence[Mapping[str, Any]] = ()
    thinking: str | None = None
    finish_reason: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """A score from 0 to 1 and its reason in words; value None leaves the response unscored.

    answer: what was read from the response; equal answers of two responses must be equal texts. scores: single scores
    by name, from 0 to 1, each of which gets a history of its own.
    """

    value: float | None = None
    reason: str = ""
    answer: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


Scorer = Callable[..., Score | float | bool]


def serve(scorer: Scorer, *, requests: BinaryIO | None = None, replies: BinaryIO | None = None) -> None:
    """Answer every line of `requests` with one line, in order. An exception leaves its response unscored."""
    lines, out = requests or sys.stdin.buffer, replies or sys.stdout.buffer
    sys.stdout = sys.stderr  # what the scorer prints is no reply
    takes_options = len(inspect.signature(scorer).parameters) > 2
    for line in lines:
        sent = json.loads(line)
        given = [Case(**sent["case"]), Response(**sent["response"])]
        try:
            reply = _reply(scorer(*given, *([sent["options"]] if takes_options else [])))
            written = json.dumps({"id": sent["id"], **reply}, allow_nan=False)
        except Exception as problem:  # noqa: BLE001  whatever a team's code raises leaves this one response unscored
            traceback.print_exc()
            written = json.dumps({"id": sent["id"], "error": f"{type(problem).__name__}: {problem}"})
        out.write(written.encode() + b"\n")
        out.flush()


def load(place: str) -> Scorer:
    """Import a scorer from `module:name`, as entry points write it. Raises ImportError or AttributeError."""
    module, _, name = place.partition(":")
    scorer = importlib.import_module(module)
    for part in name.split("."):
        scorer = getattr(scorer, part)
    return scorer  # type: ignore[return-value]  # what it is shows when it is called


def _reply(given: Score | float | bool) -> dict[str, Any]:
    if not isinstance(given, Score):
        return {"value": given, "reason": ""}
    return {"value": given.value, "reason": given.reason, "answer": given.answer, "scores": dict(given.scores)}


if __name__ == "__main__":
    # The package itself is not readable here. What a scorer imports from it are this module's own classes.
    own, package = sys.modules["__main__"], types.ModuleType("evalboard")
    package.scorers = own  # type: ignore[attr-defined]
    sys.modules |= {"evalboard": package, "evalboard.scorers": own}
    sys.path[:] = sys.argv[2:]
    serve(load(sys.argv[1]))
