"""Rollouts as a log: every writer's shape is recognised, and what a trainer gave arrives with the tokens."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.records import LoggedRun
from evalboard.importers.rollouts import ROUNDED, WITHOUT_TEXT, WITHOUT_TRAINER
from tests import rollouts, trainer_dumps
from tests.core.test_rollouts import PROMPT, SAMPLED, SKYRL_OUTPUT, TOKENS, WRITTEN
from tests.importers import openai_logs

TRAINERS = ("trainer_logprobs", "prev_logprobs", "old_log_probs", "action_log_probs", "old_per_token_logps")

Written = Callable[[str, bytes], LogFile]


def read(written: Written, *rows: dict[str, Any], name: str = "step-12.jsonl") -> LoggedRun:
    format_name, [run] = read_logs([written(name, rollouts.content(list(rows)))])
    assert format_name == "rollouts"
    return run


BOTH_SIDES = [name for name, row in WRITTEN.items() if any(each in row for each in TRAINERS)]


@pytest.mark.parametrize("writer", BOTH_SIDES)
def test_every_writer_s_rollouts_come_with_both_sides(written: Written, writer: str) -> None:
    run = read(written, WRITTEN[writer])
    [response], [case] = run.responses, run.cases
    assert (run.slug, run.tool, run.detail, run.has_texts) == ("step-12", "rollouts", "ids_alone", False)
    assert case.messages[0]["content"] == f"Token ids: {' '.join(map(str, PROMPT))}"
    assert response.prompt_token_ids == tuple(PROMPT)
    assert response.positions is not None
    assert response.positions.token_ids.tolist() == TOKENS
    assert response.trainer is not None
    assert response.trainer.is_sampled == tuple(map(bool, SAMPLED))
    for logprobs, known in (
        (response.positions.logprobs, (-0.5, -1.0, -0.25)),
        (response.trainer.logprobs, (-0.5, -1.5, -0.125)),
    ):
        assert math.isnan(logprobs[2]), "what a writer puts at a tool's token is no logprob"
        assert [*logprobs[:2], logprobs[3]] == list(known)


def test_a_rollout_is_called_by_its_id_or_its_place(written: Written) -> None:
    lines = rollouts.rows(2)
    assert [case.id for case in read(written, *lines).cases] == ["roll-0", "roll-1"]
    twice = [line | {"id": "same"} for line in lines]
    assert [case.id for case in read(written, *twice).cases] == ["rollout-1", "rollout-2"]


def test_a_batch_that_is_longer_than_its_beginning_is_recognised(written: Written) -> None:
    lines = rollouts.rows(400, 60)
    batch = {
        "prompts": [line["prompt_token_ids"] for line in lines],
        "responses": [line["token_ids"] for line in lines],
        "rollout_log_probs": [line["logprobs"] for line in lines],
        "old_log_probs": [line["trainer_logprobs"] for line in lines],
    }
    assert len(json.dumps(batch)) > 2 * (64 << 10)
    assert len(read(written, batch).responses) == 400


def test_the_notes_say_what_the_file_does_not_hold(written: Written) -> None:
    [line] = rollouts.rows(1)
    assert read(written, line).notes == (WITHOUT_TEXT,)
    assert read(written, SKYRL_OUTPUT).notes == (WITHOUT_TEXT, WITHOUT_TRAINER)
    line["trainer_logprobs"][4] += 1e-12
    assert read(written, line).notes == (WITHOUT_TEXT, ROUNDED.format(n="1 token"))


ODD = [
    ({"logprobs": [-0.5]}, "line 2: logprobs has 1 numbers for 30 tokens"),
    ({"token_ids": ["a"]}, "line 2: token_ids must be a list of token ids"),
    ({"id": "a\nb"}, "line 2: id must be 1 to 200 characters"),
]


@pytest.mark.parametrize(("change", "words"), ODD)
def test_one_odd_row_is_left_out_with_its_line_and_the_others_keep_their_places(
    written: Written, change: dict[str, Any], words: str
) -> None:
    first, second, third = (row | {"id": "same"} for row in rollouts.rows(3))
    run = read(written, first, second | change, third)
    assert [response.case_id for response in run.responses] == ["rollout-1", "rollout-3"]
    assert run.notes[0].startswith(f"Of step-12.jsonl 1 of 3 rows cannot be read and are missing: {words}")


@pytest.mark.parametrize(("change", "words"), ODD)
def test_a_file_of_odd_rows_is_refused_by_their_lines(written: Written, change: dict[str, Any], words: str) -> None:
    first, second, third = rollouts.rows(3)
    with pytest.raises(InvalidInput, match="line 2, line 3" + words.removeprefix("line 2")) as refused:
        read(written, first, second | change, third | change)
    assert list(refused.value.fields) == ["step-12.jsonl"]


@pytest.mark.parametrize("writer", list(trainer_dumps.TEXTS))
def test_a_trainer_s_texts_are_told_from_a_log_of_no_known_format(written: Written, writer: str) -> None:
    with pytest.raises(InvalidInput, match="which has texts and no token ids or logprobs") as refused:
        read(written, trainer_dumps.TEXTS[writer])
    assert list(refused.value.fields) == ["step-12.jsonl"]


def test_a_trainer_that_computed_nothing_is_refused(written: Written) -> None:
    lines = [line | {"trainer_logprobs": [0.0] * 30} for line in rollouts.rows(2)]
    with pytest.raises(InvalidInput, match="Every logprob of the trainer is 0"):
        read(written, *lines)


def test_a_completion_with_token_ids_is_no_rollout(written: Written) -> None:
    body = openai_logs.body(openai_logs.choice("Rain.")) | {"prompt_token_ids": [1, 2, 3]}
    name, _ = read_logs([written("log.jsonl", f"{json.dumps(body)}\n".encode())])
    assert name == "chat"
