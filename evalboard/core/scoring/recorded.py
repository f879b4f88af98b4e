"""The `recorded` scorer: scores read from another tool's log. It cannot score new responses."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.core.scoring.kind import REQUIRED, Option, Options, Score, ScorerKind, Tools, text_of

MAX_SOURCE_CHARS = 300


def is_recorded(plan: Mapping[str, Any]) -> bool:
    """Tell whether a scoring plan has cases whose scores only a log can bring."""
    return any(
        spec is not None and spec["kind"] == RECORDED.name for spec in (plan["default"], *plan["cases"].values())
    )


def _score(_options: Options, _text: str, _targets: list[Any], _tools: Tools) -> Score:
    raise InvalidInput("Scores of the kind recorded were read from a log and cannot be made again.")


RECORDED = ScorerKind(
    name="recorded",
    version=1,
    options={"source": Option(REQUIRED, text_of(at_least=1, at_most=MAX_SOURCE_CHARS))},
    target_problem=lambda _options, _target: None,
    score=_score,
    needs_target=lambda _options: False,
    reads_answers=lambda _options: False,
    scores_here=False,
)
