"""The lab's numbers: intervals that hold, what a plan leaves out, and what may be said of a row."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from evalboard.contract.lab import LabRow
from evalboard.contract.lab_kinds import Source, State
from evalboard.core.cost import Pace, estimate_cost
from evalboard.core.lab import (
    SPACINGS,
    ArmFigures,
    Choice,
    Surroundings,
    add_costs,
    combine_arms,
    judge_rows,
    measure_spread,
    plan_variance,
    respace,
)
from evalboard.core.lab.spread import mean_range, range_quantile
from evalboard.core.profile import DEFAULT_PROFILES, parse_profile, plan_engine
from evalboard.core.stats.noise import MEAN_RANGE
from evalboard.wording.lab_report import describe_sd
from tests.nightly import few

PINNED = DEFAULT_PROFILES["pinned"]["settings"]
FLASH = {**PINNED, "cuda": {**PINNED["cuda"], "engine": {"attention_backend": "FLASH_ATTN"}}}
STEP = 0.125  # of 800 cases
TRIALS = 2000


@pytest.mark.parametrize("n", MEAN_RANGE)
def test_the_mean_range_is_that_of_the_tables(n: int) -> None:
    assert mean_range(n) == pytest.approx(MEAN_RANGE[n], abs=0.0006)


@pytest.mark.parametrize(("n", "level", "value"), [(20, 0.95, 5.012), (5, 0.95, 3.858), (2, 0.95, 2.772)])
def test_quantiles_of_the_range_are_those_of_the_tables(n: int, level: float, value: float) -> None:
    """The studentized range with infinitely many degrees of freedom, as tables have it."""
    assert range_quantile(level, n) == pytest.approx(value, abs=0.002)


@pytest.mark.parametrize("n", few([5, 20], 1))
def test_intervals_hold_as_often_as_they_say(n: int) -> None:
    rng = np.random.default_rng(3)
    sd = 0.8
    in_sd = in_range = 0
    for _ in range(TRIALS):
        spread = measure_spread((80 + sd * rng.standard_normal(n)).tolist(), step=STEP)
        assert spread.sd_interval is not None
        assert spread.range_interval is not None
        in_sd += spread.sd_interval[0] <= sd <= spread.sd_interval[1]
        in_range += spread.range_interval[0] <= sd * mean_range(n) <= spread.range_interval[1]
    assert 0.935 < in_sd / TRIALS < 0.985
    assert 0.935 < in_range / TRIALS < 0.965


@pytest.mark.parametrize(
    ("draw", "sd", "least"),
    [
        pytest.param(lambda rng: rng.binomial(1, 0.1, 10) * 1.0, 0.3, 0.9, id="one case flips in a tenth of runs"),
        pytest.param(lambda rng: 2.0 * rng.standard_t(4, 10), 2 * math.sqrt(2), 0.87, id="heavy tails"),
        pytest.param(lambda rng: np.round(3 * np.exp(rng.normal(size=10))), 6.48, 0.75, id="skew"),
    ],
)
def test_the_upper_end_of_a_standard_deviation_is_seldom_too_low(
    draw: Callable[[np.random.Generator], np.ndarray], sd: float, least: float
) -> None:
    """Where a tail is heavy and runs are few, it is said to be open."""
    rng = np.random.default_rng(7)
    spreads = [measure_spread(draw(rng).tolist(), step=1.0) for _ in range(300)]
    above = [each.sd_interval is not None and (sd <= each.sd_interval[1] or each.is_open) for each in spreads]
    assert sum(above) / len(above) >= least


def test_an_outlier_among_few_runs_leaves_the_upper_end_open() -> None:
    most = [80.0, 80.125, 80.25, 80.125, 80.0, 80.125, 80.25, 80.125, 80.0]
    assert measure_spread([*most, 75.0], step=STEP).is_open
    assert not measure_spread([*most, 80.25], step=STEP).is_open
    assert not measure_spread([*most, *most, 80.0, 75.0], step=STEP).is_open  # 20 runs show their tails


def test_an_upper_end_that_is_open_is_said_to_be() -> None:
    row = LabRow.model_construct(sd=0.82, sd_interval=(0.49, 2.3), is_sd_open=True)
    assert describe_sd(row) == "0.82 [0.49, at least 2.30]"
    assert describe_sd(row.model_copy(update={"is_sd_open": None})) == "0.82 [0.49, 2.30]"


def test_the_order_of_runs_changes_no_digit_of_an_interval() -> None:
    points = [80.0, 81.125, 79.25, 80.5, 74.875]
    assert measure_spread(points, step=STEP) == measure_spread(points[::-1], step=STEP)


def test_runs_that_are_equal_bound_what_could_have_been_missed() -> None:
    """A case that flips in 3 of n runs is seen in none of n one time in twenty; it moves the score by a step."""
    spread = measure_spread([81.25] * 20, step=STEP)
    assert (spread.range, spread.sd) == (0.0, 0.0)
    assert spread.sd_interval == (0.0, pytest.approx(math.sqrt(3 / 20) * STEP))
    assert spread.range_interval == (0.0, pytest.approx(mean_range(20) * math.sqrt(3 / 20) * STEP))
    flips = np.random.default_rng(5).random((20_000, 20)) < 3 / 20
    assert np.mean(~flips.any(axis=1)) < 0.05
    assert flips.std() * STEP < spread.sd_interval[1]


def test_one_run_says_nothing_of_spread() -> None:
    spread = measure_spread([80.0], step=STEP)
    assert (spread.sd, spread.sd_interval, spread.range_interval, spread.range) == (None, None, None, 0.0)


def around(**changes: Any) -> Surroundings:
    known: dict[str, Any] = {
        "endpoint": "ours",
        "settings": PINNED,
        "dtype": "float32",
        "hardware": frozenset({"cuda"}),
    }
    return Surroundings(**{**known, "n_cases": 24, **changes})


def test_a_plan_lets_go_of_exactly_one_thing_in_each_arm() -> None:
    everything = around(dtypes=(Choice("half", "bfloat16"),), gateways=("router",), temperature=0.7)
    arms, left = plan_variance(everything, n_runs=20)
    planned = [arm.source for arm in arms]
    assert planned == [source for source in Source if source in planned]
    assert {each.source for each in left} == set(Source) - set(planned)
    by_source = {arm.source: arm for arm in arms}
    assert by_source[Source.CONTROL].is_restarted
    assert by_source[Source.ORDER].is_shuffled
    assert by_source[Source.ORDER].settings is None
    for source, section, name, value in [
        (Source.GRAPHS, "engine", "enforce_eager", False),
        (Source.PREFIX_CACHE, "engine", "enable_prefix_caching", True),
        (Source.SAMPLER, "sampling", "temperature", 0.7),
    ]:
        settings = by_source[source].settings
        assert settings == {**PINNED, section: {**PINNED[section], name: value}}
    batch = by_source[Source.BATCH]
    assert batch.settings is not None
    assert (batch.settings["batch_class"], batch.is_shuffled) == ("mixed", True)
    assert not batch.settings["engine"]["enable_prefix_caching"]
    assert (by_source[Source.DTYPE].endpoint, by_source[Source.DTYPE].n_runs) == ("half", 2)
    assert by_source[Source.PARSER].n_runs == 0
    for arm in arms:
        parse_profile(PINNED if arm.settings is None else arm.settings)


@pytest.mark.parametrize(
    ("changes", "source", "code"),
    [
        ({}, Source.DTYPE, "one_dtype"),
        ({}, Source.ROUTING, "no_gateway"),
        ({}, Source.SAMPLER, "greedy"),
        ({"hardware": frozenset()}, Source.KV_CACHE, "not_varied"),
        ({"hardware": frozenset()}, Source.GRAPHS, "not_varied"),
        ({"hardware": frozenset({"cpu", "cuda"})}, Source.GRAPHS, "not_varied"),
        ({"hardware": frozenset({"cpu"})}, Source.KV_CACHE, "no_avx512"),
        ({"hardware": frozenset({"cpu", "cuda"}), "has_avx512": True}, Source.KV_CACHE, "not_varied"),
        ({"hardware": frozenset({"cpu"})}, Source.ATTENTION, "no_gpu"),
        ({"hardware": frozenset({"cpu"})}, Source.GRAPHS, "eager_only"),
        ({}, Source.BUILD, "own_build"),
        ({"hardware": frozenset({"cuda"}), "n_gpus": 1}, Source.TENSOR_PARALLEL, "one_gpu"),
        ({"hardware": frozenset({"cuda"}), "n_gpus": 0}, Source.TENSOR_PARALLEL, "one_gpu"),
        ({"hardware": frozenset({"cpu", "cuda"}), "n_gpus": 4}, Source.TENSOR_PARALLEL, "not_varied"),
        ({"hardware": frozenset({"cpu", "cuda"})}, Source.ATTENTION, "not_varied"),
        ({"settings": {**PINNED, "cuda": {}}}, Source.ATTENTION, "not_pinned"),
        ({"is_remote": True, "n_gpus": 4}, Source.ATTENTION, "not_ours"),
        ({"is_remote": True}, Source.GRAPHS, "not_ours"),
        ({"is_remote": True}, Source.BUILD, "others_decide"),
        ({"is_recorded": True}, Source.PARSER, "recorded"),
        ({"n_cases": 20_001}, Source.PARSER, "too_large"),
        ({"settings": {**PINNED, "engine": {"seed": 1}}}, Source.GRAPHS, "not_pinned"),
    ],
)
def test_what_cannot_be_let_go_is_named_with_its_reason(changes: dict[str, Any], source: Source, code: str) -> None:
    arms, left = plan_variance(around(**changes), n_runs=5)
    assert {each.source: each.code for each in left}[source] == code
    assert source not in {arm.source for arm in arms}


def test_cpus_with_avx512_keep_the_kv_cache_in_8_bits_for_two_passes() -> None:
    arms, _ = plan_variance(around(hardware=frozenset({"cpu"}), has_avx512=True), n_runs=20)
    [arm] = [arm for arm in arms if arm.source is Source.KV_CACHE]
    assert (arm.name, arm.n_runs) == ("fp8", 2)
    assert arm.settings == {**PINNED, "engine": {**PINNED["engine"], "kv_cache_dtype": "fp8"}}


@pytest.mark.parametrize(
    ("changes", "source", "name", "path"),
    [
        ({}, Source.KV_CACHE, "fp8", "engine.kv_cache_dtype"),
        ({"dtype": "bfloat16"}, Source.ATTENTION, "FLASH_ATTN", "cuda.engine.attention_backend"),
        ({"dtype": "float32"}, Source.ATTENTION, "FLEX_ATTENTION", "cuda.engine.attention_backend"),
        ({"settings": FLASH}, Source.ATTENTION, "TRITON_ATTN", "cuda.engine.attention_backend"),
        ({"n_gpus": 2}, Source.TENSOR_PARALLEL, "2", "engine.tensor_parallel_size"),
    ],
)
def test_gpus_try_another_kernel_for_two_passes(changes: dict[str, Any], source: Source, name: str, path: str) -> None:
    """Each arm changes one setting of the engine, and the engine of a GPU gets it."""
    surroundings = around(**changes)
    arms, _ = plan_variance(surroundings, n_runs=20)
    [arm] = [arm for arm in arms if arm.source is source]
    assert (arm.name, arm.n_runs) == (name, 2)
    assert arm.settings is not None
    pinned, tried = flat(surroundings.settings), flat(arm.settings)
    assert {each for each in pinned | tried if pinned.get(each) != tried.get(each)} == {path}
    limits: dict[str, Any] = {"quantization": None, "max_model_len": 512, "max_tokens": 16, "stop": []}
    planned = plan_engine(parse_profile(arm.settings), {"kind": "cuda"}, dtype="float32", **limits)
    assert str(planned.engine[path.rpartition(".")[2]]) == name


def flat(settings: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in settings.items():
        found |= flat(value, f"{under}{key}.") if isinstance(value, Mapping) else {f"{under}{key}": value}
    return found


def test_the_control_comes_with_whatever_is_chosen() -> None:
    arms, left = plan_variance(around(), n_runs=5, wanted=frozenset({Source.ORDER}))
    assert [arm.source for arm in arms] == [Source.CONTROL, Source.ORDER]
    assert {each.source: each.code for each in left}[Source.BATCH] == "not_asked"


def test_others_servers_are_not_restarted_for_the_control() -> None:
    [control, *_], _ = plan_variance(around(is_remote=True), n_runs=5)
    assert not control.is_restarted


def test_costs_count_starts_and_passes_and_are_not_known_without_a_run_before() -> None:
    pace = Pace(pass_seconds=60, pass_tokens=1000, start_seconds=30)
    control = estimate_cost(20, pace=pace, is_restarted=True, has_engine=True)
    assert (control.n_starts, control.tokens, control.minutes) == (20, 20_000, 30)
    order = estimate_cost(20, pace=pace, is_restarted=False, has_engine=True)
    assert (order.n_starts, order.minutes) == (2, 21)
    theirs = estimate_cost(20, pace=Pace(60, 1000), is_restarted=False, has_engine=False)
    assert (theirs.n_starts, theirs.minutes) == (0, 20)
    unknown = estimate_cost(20, pace=Pace(), is_restarted=False, has_engine=True)
    assert add_costs([control, order]).minutes == 51
    assert (add_costs([control, unknown]).minutes, add_costs([control, unknown]).n_runs) == (None, 40)


def passes(*points: float, n_same: int | None = None, n_flipped: int = 0) -> ArmFigures:
    same = len(points) if n_same is None else n_same
    return ArmFigures(points=points, n_same=same, n_responses=100, n_flipped=n_flipped, n_tokens=500, seconds=5.0)


def judged(*rows: tuple[Source, ArmFigures | None]) -> list[State]:
    figures = [
        (source, None if arm is None else combine_arms(source, [arm], control=80.0, step=1.0)) for source, arm in rows
    ]
    return [finding.state for finding in judge_rows(figures)]


HELD = (Source.CONTROL, passes(80.0, 80.0, 80.0))


@pytest.mark.parametrize(
    ("source", "arm", "state"),
    [
        (Source.BATCH, passes(80.0, 82.0, 80.0, n_same=1, n_flipped=4), State.SOURCE),
        (Source.GRAPHS, passes(81.0, 81.0, 81.0, n_same=0, n_flipped=9), State.SOURCE),
        (Source.BATCH, passes(80.0, 80.0, 80.0, n_same=0, n_flipped=4), State.ANSWERS_ONLY),
        (Source.BATCH, passes(80.0, 80.0, 80.0, n_same=0), State.BITS_ONLY),
        (Source.ORDER, passes(80.0, 80.0, 80.0), State.NONE_SEEN),
        (Source.DTYPE, passes(79.0), State.SOURCE),
        (Source.ROUTING, ArmFigures(points=(None, None)), State.NOT_SCORED),
        (Source.ROUTING, None, State.NOT_MEASURED),
    ],
)
def test_a_row_is_judged_by_its_score_then_its_answers_then_its_bits(
    source: Source, arm: ArmFigures | None, state: State
) -> None:
    assert judged(HELD, (source, arm)) == [State.HOLDS, state]


@pytest.mark.parametrize(
    ("control", "state"),
    [
        (passes(80.0, 81.0, n_same=1, n_flipped=1), State.MOVED),
        (passes(80.0, 80.0, n_same=1, n_flipped=1), State.MOVED),
        (passes(80.0, 80.0, n_same=1), State.HOLDS_IN_ANSWERS),
        (passes(80.0), State.NOT_SCORED),
    ],
)
def test_nothing_is_blamed_unless_the_control_holds(control: ArmFigures, state: State) -> None:
    moving = (Source.BATCH, passes(80.0, 85.0, n_same=1, n_flipped=9))
    said = judged((Source.CONTROL, control), moving)
    after = {State.MOVED: State.NOT_BLAMED, State.HOLDS_IN_ANSWERS: State.SOURCE, State.NOT_SCORED: State.NOT_SCORED}
    assert said == [state, after[state]]
    assert judged((Source.CONTROL, None), moving)[1] is State.NOT_MEASURED


def test_a_choice_has_the_control_in_its_range_and_no_interval() -> None:
    row = combine_arms(Source.DTYPE, [passes(78.0, 78.0), passes(81.0, 81.0)], control=80.0, step=1.0)
    assert row.spread is not None
    assert (row.spread.range, row.spread.sd, row.spread.range_interval, row.reach) == (3.0, None, None, 1.5)
    assert row.at_most is None


def test_figures_survive_being_stored() -> None:
    figures = ArmFigures(points=(80.0, None), repeats=(1, 3), n_same=1, first_flips=(4,), n_tokens=9)
    assert ArmFigures.from_json({**asdict(figures), "points": [80.0, None], "repeats": [1, 3]}) == figures


def test_spacing_changes_no_word() -> None:
    text = "one\ntwo  three "
    assert all(respace(text, name).split() == text.split() for name in SPACINGS)
    assert len({respace(text, name) for name in SPACINGS} | {text}) == len(SPACINGS) + 1
