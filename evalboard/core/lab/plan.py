"""Plan a variance experiment: which sources can be varied here, and why the others cannot."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalboard.contract.lab_kinds import SOURCES, Source
from evalboard.contract.run import RunCost

NO_COST = RunCost(n_runs=0, n_starts=0, tokens=0.0, minutes=0.0)


def add_costs(costs: Iterable[RunCost]) -> RunCost:
    """Add up the costs of conditions; a number that is unknown for one of them is None."""
    n_runs = n_starts = 0
    tokens: float | None = 0.0
    minutes: float | None = 0.0
    for cost in costs:
        n_runs, n_starts = n_runs + cost.n_runs, n_starts + cost.n_starts
        tokens = None if tokens is None or cost.tokens is None else tokens + cost.tokens
        minutes = None if minutes is None or cost.minutes is None else minutes + cost.minutes
    return RunCost(n_runs=n_runs, n_starts=n_starts, tokens=tokens, minutes=minutes)


MIN_RUNS = 5
STEADY_RUNS = 2  # of a choice, such as another dtype: enough to see whether it is as steady as the control
CACHE_DTYPE, OTHER_CACHE_DTYPE = "auto", "fp8"  # as profiles name them; auto is the model's own
# Attention on GPUs, as vLLM names it: what profiles pin, another one for half precision, and one that has float32 too.
ATTENTION, OTHER_ATTENTION, OTHER_ATTENTION_FLOAT32 = "TRITON_ATTN", "FLASH_ATTN", "FLEX_ATTENTION"
PARALLEL, OTHER_PARALLEL = 1, 2  # GPUs that one model is spread over
MAX_CASES_PARSED = 20_000
BATCH_SEATS, BATCH_SEATS_CPU = 64, 8  # as many as the profiles invariant and fast have

Settings = Mapping[str, Any]
Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """Another endpoint that serves the same weights, with its dtype."""

    endpoint: str
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known of an endpoint and its profile when an experiment is planned.

    settings: of the profile that everything is pinned by. is_remote: the endpoint is external. dtypes: other endpoints
    of the same weights. gateways: endpoints that lead to this one. temperature: at which the suite's cases are drawn;
    None: nobody draws them. hardware: the kinds of the pool's workers; n_gpus: the fewest that one of them has.
    has_avx512: all of these workers' processors do, where they decode on CPUs. is_recorded: scores were read from logs,
    and no text can be scored again. is_judged: a model scores. is_spread: the endpoint itself says over how many GPUs.
    """

    endpoint: str
    settings: Settings
    is_remote: bool = False
    dtype: str = ""
    dtypes: tuple[Choice, ...] = ()
    gateways: tuple[str, ...] = ()
    temperature: float | None = None
    hardware: frozenset[str] = frozenset()
    n_gpus: int = 0
    has_avx512: bool = False
    n_cases: int = 0
    is_recorded: bool = False
    is_judged: bool = False
    is_spread: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArm:
    """A planned condition: one ordinary run, or a computation on stored texts if n_runs is 0.

    name: distinguishes it from other conditions of its source. settings: of its profile; None: the experiment's own.
    """

    source: Source
    endpoint: str
    name: str = ""
    n_runs: int
    settings: Settings | None = None
    is_shuffled: bool = False
    is_restarted: bool = False


@dataclass(frozen=True, slots=True)
class UnmeasuredSource:
    """A source that is not measured, with the code of the reason and its facts."""

    source: Source
    code: str
    facts: Facts = field(default_factory=dict)


Planned = tuple[PlannedArm, ...] | UnmeasuredSource


def plan_variance(
    around: Surroundings, *, n_runs: int, wanted: frozenset[Source] = frozenset(SOURCES)
) -> tuple[tuple[PlannedArm, ...], tuple[UnmeasuredSource, ...]]:
    """Return the conditions in run order, the control first, and the sources left out with the reason.

    n_runs: passes per condition, MIN_RUNS or more. wanted: sources; the control is always included.
    """
    arms: list[PlannedArm] = []
    left: list[UnmeasuredSource] = []
    for source in SOURCES:
        planned = _PLANS[source](around, n_runs)
        if isinstance(planned, UnmeasuredSource):
            left.append(planned)
        elif source in wanted or source is Source.CONTROL:
            arms.extend(planned)
        else:
            left.append(UnmeasuredSource(source, "not_asked"))
    return tuple(arms), tuple(left)


def _plan_control(around: Surroundings, n_runs: int) -> Planned:
    return (_arm(Source.CONTROL, around, n_runs, is_restarted=not around.is_remote),)


def _plan_order(around: Surroundings, n_runs: int) -> Planned:
    return (_arm(Source.ORDER, around, n_runs, is_shuffled=True),)


def _plan_batch(around: Surroundings, n_runs: int) -> Planned:
    engine, cpu = around.settings.get("engine", {}), around.settings.get("cpu", {})
    settings = {
        **around.settings,
        "batch_class": "mixed",
        "engine": {**engine, "max_num_seqs": BATCH_SEATS},
        "cpu": {**cpu, "engine": {**cpu.get("engine", {}), "max_num_seqs": BATCH_SEATS_CPU}},
    }
    return (_arm(Source.BATCH, around, n_runs, settings=settings, is_shuffled=True),)


def _plan_graphs(around: Surroundings, n_runs: int) -> Planned:
    if not around.is_remote and around.hardware != {"cuda"}:
        return UnmeasuredSource(Source.GRAPHS, "eager_only" if around.hardware == {"cpu"} else "not_varied")
    return _plan_setting(Source.GRAPHS, around, n_runs, "enforce_eager", pinned=True, other=False)


def _plan_prefix_cache(around: Surroundings, n_runs: int) -> Planned:
    return _plan_setting(Source.PREFIX_CACHE, around, n_runs, "enable_prefix_caching", pinned=False, other=True)


def _plan_setting(
    source: Source, around: Surroundings, n_runs: int, name: str, *, pinned: Any, other: Any, arm_name: str = ""
) -> Planned:
    """Give one setting of the engine another value than the pinned one."""
    if around.is_remote:
        return UnmeasuredSource(source, "not_ours")
    own = around.settings.get("engine", {}).get(name)
    overlays = {kind: around.settings[kind] for kind in ("cpu", "cuda") if kind in around.settings}
    if own != pinned or any(name in overlay.get("engine", {}) for overlay in overlays.values()):
        return UnmeasuredSource(source, "not_pinned", {"setting": name})
    settings = {**around.settings, "engine": {**around.settings["engine"], name: other}}
    return (_arm(source, around, n_runs, settings=settings, name=arm_name),)


def _plan_dtype(around: Surroundings, n_runs: int) -> Planned:
    if around.is_remote:
        return UnmeasuredSource(Source.DTYPE, "not_ours")
    if not around.dtypes:
        return UnmeasuredSource(Source.DTYPE, "one_dtype", {"dtype": around.dtype})
    n_each = min(n_runs, STEADY_RUNS)
    return tuple(
        PlannedArm(source=Source.DTYPE, endpoint=each.endpoint, name=each.dtype, n_runs=n_each)
        for each in around.dtypes
    )


def _plan_kv_cache(around: Surroundings, n_runs: int) -> Planned:
    if around.is_remote or around.hardware not in ({"cpu"}, {"cuda"}):
        return _leave_out_kernels(Source.KV_CACHE, around)
    if around.hardware == {"cpu"} and not around.has_avx512:
        return UnmeasuredSource(Source.KV_CACHE, "no_avx512")
    change = {"pinned": CACHE_DTYPE, "other": OTHER_CACHE_DTYPE, "arm_name": OTHER_CACHE_DTYPE}
    return _plan_setting(Source.KV_CACHE, around, min(n_runs, STEADY_RUNS), "kv_cache_dtype", **change)


def _plan_routing(around: Surroundings, n_runs: int) -> Planned:
    if not around.gateways:
        return UnmeasuredSource(Source.ROUTING, "no_gateway", {"endpoint": around.endpoint})
    return tuple(
        PlannedArm(source=Source.ROUTING, endpoint=gateway, name=gateway, n_runs=n_runs) for gateway in around.gateways
    )


def _plan_sampler(around: Surroundings, n_runs: int) -> Planned:
    if not around.temperature:
        return UnmeasuredSource(Source.SAMPLER, "greedy")
    sampling = {**around.settings["sampling"], "temperature": around.temperature}
    return (_arm(Source.SAMPLER, around, n_runs, settings={**around.settings, "sampling": sampling}),)


def _leave_out_kernels(source: Source, around: Surroundings) -> Planned:
    if around.is_remote:
        return UnmeasuredSource(source, "not_ours")
    return UnmeasuredSource(source, "no_gpu" if around.hardware == {"cpu"} else "not_varied")


def _plan_attention(around: Surroundings, n_runs: int) -> Planned:
    if around.is_remote or around.hardware != {"cuda"}:
        return _leave_out_kernels(Source.ATTENTION, around)
    cuda = around.settings.get("cuda", {})
    engine = cuda.get("engine", {})  # overrides the settings for all hardware
    own = {**around.settings.get("engine", {}), **engine}.get("attention_backend")
    if own is None:
        return UnmeasuredSource(Source.ATTENTION, "not_pinned", {"setting": "attention_backend"})
    fast = OTHER_ATTENTION_FLOAT32 if around.dtype == "float32" else OTHER_ATTENTION
    other = fast if own == ATTENTION else ATTENTION
    settings = {**around.settings, "cuda": {**cuda, "engine": {**engine, "attention_backend": other}}}
    return (_arm(Source.ATTENTION, around, min(n_runs, STEADY_RUNS), settings=settings, name=other),)


def _plan_tensor_parallel(around: Surroundings, n_runs: int) -> Planned:
    if around.is_remote or around.hardware != {"cuda"}:
        return _leave_out_kernels(Source.TENSOR_PARALLEL, around)
    if around.is_spread:
        return UnmeasuredSource(Source.TENSOR_PARALLEL, "is_spread")
    if around.n_gpus < OTHER_PARALLEL:
        return UnmeasuredSource(Source.TENSOR_PARALLEL, "one_gpu")
    change: dict[str, Any] = {"pinned": PARALLEL, "other": OTHER_PARALLEL, "arm_name": str(OTHER_PARALLEL)}
    return _plan_setting(Source.TENSOR_PARALLEL, around, min(n_runs, STEADY_RUNS), "tensor_parallel_size", **change)


def _plan_parser(around: Surroundings, n_runs: int) -> Planned:
    if around.is_recorded:
        return UnmeasuredSource(Source.PARSER, "recorded")
    if around.n_cases > MAX_CASES_PARSED:
        return UnmeasuredSource(Source.PARSER, "too_large", {"limit": MAX_CASES_PARSED})
    return (_arm(Source.PARSER, around, 0),)


def _plan_build(around: Surroundings, n_runs: int) -> Planned:
    return UnmeasuredSource(Source.BUILD, "others_decide" if around.is_remote else "own_build")


def _plan_judge(around: Surroundings, n_runs: int) -> Planned:
    return UnmeasuredSource(Source.JUDGE, "judge_measured" if around.is_judged else "no_model_judges")


def _arm(source: Source, around: Surroundings, n_runs: int, **more: Any) -> PlannedArm:
    return PlannedArm(source=source, endpoint=around.endpoint, n_runs=n_runs, **more)


_PLANS: Mapping[Source, Callable[[Surroundings, int], Planned]] = {
    Source.CONTROL: _plan_control,
    Source.ORDER: _plan_order,
    Source.BATCH: _plan_batch,
    Source.GRAPHS: _plan_graphs,
    Source.PREFIX_CACHE: _plan_prefix_cache,
    Source.DTYPE: _plan_dtype,
    Source.KV_CACHE: _plan_kv_cache,
    Source.ROUTING: _plan_routing,
    Source.SAMPLER: _plan_sampler,
    Source.ATTENTION: _plan_attention,
    Source.TENSOR_PARALLEL: _plan_tensor_parallel,
    Source.PARSER: _plan_parser,
    Source.BUILD: _plan_build,
    Source.JUDGE: _plan_judge,
}
