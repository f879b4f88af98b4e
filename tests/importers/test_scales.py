"""What scores mean that are not from 0 to 1."""

import math
from pathlib import Path

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers.formats import read_logs
from evalboard.importers.records import LoggedRun, LoggedScore
from evalboard.importers.scales import parse_scale, read_scores
from tests.importers.inspect_log import log as inspect_log
from tests.importers.inspect_log import sample
from tests.importers.openai_logs import written
from tests.runs import logs

Values = tuple[float | None, ...]


def graded(*values: float | None) -> LoggedRun:
    answers = [
        logs.response(case, scores={"match": LoggedScore(value)})
        for case, value in zip(logs.CASES, values, strict=True)
    ]
    return logs.log(*answers)


@pytest.mark.parametrize(
    ("values", "scale", "wanted", "note"),
    [
        ((0.0, 0.5, 1.0), "", (0.0, 0.5, 1.0), ""),
        ((0.0, 1.0, 0.5), "0..10", (0.0, 1.0, 0.5), ""),  # nothing is beyond 1, so it is no scale
        ((1.0, 5.0, 10.0), "", (None, None, None), "match has values outside 0 to 1 (5 to 10)"),
        ((1.0, 5.0, 10.0), "0..10", (0.1, 0.5, 1.0), "match is read on a scale of 0 to 10."),
        ((-1.0, 0.0, 1.0), "-1..1", (0.0, 0.5, 1.0), "match is read on a scale of -1 to 1."),
        ((1.0, 5.0, 11.0), "0..10", (0.1, 0.5, None), "match is read"),
        ((1.0, None, 0.0), "", (1.0, None, 0.0), "1 answer of 3 unscored by match: its score is over the others."),
    ],
)
def test_a_score_is_what_its_author_says(values: Values, scale: str, wanted: Values, note: str) -> None:
    run = read_scores(graded(*values), parse_scale(scale))
    assert tuple(response.scores["match"].value for response in run.responses) == wanted
    assert (note in " ".join(run.notes)) if note else not run.notes


def test_values_on_an_unknown_scale_stay_as_words() -> None:
    run = read_scores(graded(1.0, 5.0, 10.0), None)
    assert [response.scores["match"].reason for response in run.responses] == ["1", "5", "10"]


@pytest.mark.parametrize("words", ["10", "10..0", "1..1", "a..b", "0...5"])
def test_what_is_no_scale_is_refused(words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_scale(words)
    assert "scale" in refused.value.fields


def test_no_number_is_unscored_and_none_is_worth_0(tmp_path: Path) -> None:
    values = {"a": math.nan, "b": None, "c": "C", "d": "I"}
    content = inspect_log(*(sample(name, scores={"grade": {"value": value}}) for name, value in values.items()))
    [run] = read_logs([written(tmp_path, "log.json", [content])])[1]
    assert [response.scores["grade"].value for response in run.responses] == [None, None, 1.0, 0.0]
    assert any(note.startswith("2 answers of 4 unscored by grade") for note in run.notes)
