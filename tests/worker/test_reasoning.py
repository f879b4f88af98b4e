"""Models that think, by a worker: what is scored, what is stored, and that a replay says the same."""

import copy
from collections.abc import Callable

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import ResponseRecord, RunRecord
from runs.replays import create_replay
from runs.replays.read import replay_row
from runs.run import run_report
from tests.worker.conftest import Join, Wait, ended

pytestmark = pytest.mark.django_db


def test_the_answer_is_scored_without_the_thinking_and_one_cut_while_it_thinks_is_none(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    settings = copy.deepcopy(DEFAULT_PROFILES["pinned"]["settings"])
    settings["sampling"]["reasoning_tags"] = {"start": "q", "end": "z"}
    create_profile(slug="thinking", title="", settings=settings)
    run = new_run(["say qhmzblue", "cut qhmhm", "say blue"], under="thinking", repeats=1)
    join_worker()
    work_until(lambda: ended(run), "the run ends")
    rows = ResponseRecord.objects.filter(repeat__run=run).order_by("case_index")
    assert [(row.text, row.reasoning, row.n_reasoning_tokens, row.is_truncated) for row in rows] == [
        ("blue", "hm", 4, False),
        ("", "hmhm", 6, True),
        ("blue", None, None, None),
    ]
    report = run_report(run.pk)
    assert report.repeats[0].score == pytest.approx(100 * 2 / 3)
    [warning] = [each for each in report.warnings if each.code == "truncated"]
    assert warning.text == "1 answer was cut inside the thinking and scores 0. Raise max_tokens."

    replay = create_replay(run_id=run.pk, case_id="case-0", repeat=1)
    work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
    assert [line["outcome"] for line in replay_row(replay.pk).results] == ["identical"]
