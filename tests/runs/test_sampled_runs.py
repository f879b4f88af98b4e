"""Runs at a temperature above 0: which seeds their calls are sent, and what became of those made before."""

import pytest

from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.profile import call_seed
from evalboard.importers.records import LoggedRun
from runs.models import RunRecord, Shard
from runs.pairs import draws_of
from runs.replays import create_replay
from runs.replays.read import cases_to_decode, replay_work
from runs.run import add_repeats, run_report
from runs.work.read import shard_work
from tests import build
from tests.nightly import few
from tests.runs import judged, logs

pytestmark = pytest.mark.django_db
CASES = ("sky", "sea", "a/b c")


def seeds(run: RunRecord) -> dict[int, list[int]]:
    """Repeat → the seeds that a worker is told to send."""
    shards = Shard.objects.filter(repeat__run=run).select_related("repeat")
    return {shard.repeat.index: [case.seed for case in shard_work(shard.pk).cases] for shard in shards}


def as_before(run: RunRecord) -> RunRecord:
    """The run as it would be had it been made before runs had seeds."""
    sampled = draws_of(run).is_sampled
    RunRecord.objects.filter(pk=run.pk).update(seed=None, is_one_draw=sampled)
    run.refresh_from_db()
    return run


def test_every_case_and_every_repeat_has_a_seed_of_its_own() -> None:
    sent = seeds(build.run(repeats=3, under="sampled"))
    sampling = build.SAMPLED["settings"]["sampling"]
    assert sent[2] == [call_seed(sampling, run_seed=42, repeat=2, case_id=case) for case in CASES]
    assert len({seed for each in sent.values() for seed in each}) == 9


def test_runs_with_one_seed_share_all_and_runs_with_another_none() -> None:
    first, twin, other = (build.run(under="sampled", seed=seed) for seed in (7, 7, 8))
    assert seeds(first) == seeds(twin)
    assert not set(seeds(first)[1]) & set(seeds(other)[1])


def test_added_repeats_go_on_with_other_draws() -> None:
    run = build.run(repeats=2, under="sampled")
    before = seeds(run)
    after = seeds(add_repeats(run_id=run.pk, n=2))
    assert after[1] == before[1]
    assert len({seed for each in after.values() for seed in each}) == 12


def test_at_temperature_0_the_seed_stays_what_the_profile_says() -> None:
    run = build.run()
    assert run.seed == 42
    assert seeds(run) == {1: [42] * 3, 2: [42] * 3}


@pytest.mark.parametrize(
    ("under", "seed", "said"),
    [
        ("pinned", 7, "temperature 0"),
        ("sampled", -1, "from 0 to"),
        ("sampled", 2**63, "from 0 to"),
    ],
)
def test_a_seed_that_can_mean_nothing_is_refused(under: str, seed: int, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build.run(under=under, seed=seed)
    assert said in refused.value.fields["seed"]
    assert not RunRecord.objects.exists()


def test_a_replay_is_told_the_seed_that_was_sent_and_so_are_its_neighbours() -> None:
    run = build.run(repeats=2, under="sampled")
    build.decode(run, 1, ["blue"] * 3)
    build.decode(run, 2, ["blue"] * 3)
    replay = create_replay(run_id=run.pk, case_id="sea", repeat=2)
    work = replay_work(replay.pk)
    assert work.case is not None
    assert [case.seed for case in work.case.shard.cases] == seeds(run)[2]
    assert [case.seed for case in cases_to_decode(replay.pk, [1, 0])] == [seeds(run)[2][1], seeds(run)[2][0]]


def test_the_history_and_the_report_say_how_it_was_drawn() -> None:
    run = build.run(under="sampled", seed=7)
    assert "sampled, T = 0.7, seed 7" in run.events.get(code="created").text
    report = run_report(run.pk)
    assert report.draws.words == "sampled, T = 0.7, seed 7"
    assert report.request_body["seed"] == 7
    greedy = run_report(build.run().pk)
    assert (greedy.draws.words, "seed" in greedy.request_body) == ("", False)


def test_a_run_of_before_keeps_the_seed_that_all_its_calls_had_and_gets_no_more_repeats() -> None:
    run = as_before(build.run(repeats=2, under="sampled"))
    assert seeds(run) == {1: [42] * 3, 2: [42] * 3}
    with pytest.raises(Conflict, match="start a new run"):
        add_repeats(run_id=run.pk, n=1)
    greedy = as_before(build.run(repeats=2))
    assert add_repeats(run_id=greedy.pk, n=1).repeats.count() == 3


def test_only_a_run_of_the_same_seed_is_a_twin() -> None:
    version = build.suite()
    process = build.process()
    first = judged.run(version, by=process, repeats=2, under="sampled", seed=7)
    other = judged.run(version, by=process, repeats=2, under="sampled", seed=8)
    again = judged.run(version, by=process, repeats=2, under="sampled", seed=7)
    assert run_report(other.pk).twin is None
    twin = run_report(again.pk).twin
    assert twin is not None
    assert (twin.run, twin.n_equal, twin.n_compared) == (str(first.pk), 6, 6)


@pytest.mark.nightly
def test_a_greedy_run_is_a_twin_of_one_made_before_runs_had_seeds() -> None:
    version = build.suite()
    process = build.process()
    first = as_before(judged.run(version, by=process, repeats=2))
    twin = run_report(judged.run(version, by=process, repeats=2).pk).twin
    assert twin is not None
    assert twin.run == str(first.pk)


def seeded(*sent: int | None, temperature: float = 0.7, call: str = "") -> LoggedRun:
    """A log whose repeats were sent these seeds, the same for every case."""
    found = [
        logs.response(case, repeat, seed=seed, request_id=call and f"{call}-{case}")
        for case in logs.CASES
        for repeat, seed in enumerate(sent, start=1)
    ]
    return logs.log(*found, sampling={"temperature": temperature, "max_tokens": 24})


@pytest.mark.parametrize(
    ("logged", "is_one"),
    few(
        [
            (seeded(7, 7), True),
            (seeded(7, 8), False),
            (seeded(None, None), False),
            (seeded(7, 7, temperature=0), False),
            (seeded(7, 7, call="chatcmpl"), False),  # two answers to one call
        ],
        2,
    ),
)
def test_a_log_whose_repeats_were_sent_one_seed_holds_one_draw(logged: LoggedRun, is_one: bool) -> None:
    run = logs.stored(logged)
    assert (run.is_one_draw, run.seed) == (is_one, None)
