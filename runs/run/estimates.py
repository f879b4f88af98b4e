"""How long engines were at work on a run, and from that what another will take."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Avg, OuterRef, Subquery

from evalboard.contract.parts import Cost, CostEstimate
from evalboard.contract.run import JudgeEstimate, RunEstimate
from evalboard.core import scoring
from evalboard.core.cost import Pace, Usage, estimate_cost, price_usage, scale_amount, write_amount
from evalboard.core.digest import canonical_json
from evalboard.core.profile import LIMIT
from evalboard.wording.numbers import money
from evalboard.wording.run import ESTIMATE, describe_estimate
from runs.models import EndpointRecord, EngineProcess, ProfileRecord, RepeatRecord, RunRecord, SuiteVersionRecord
from runs.run.runs import find_order, named_endpoint
from runs.work import count_judgements, read_usage

STARTS_READ = 10
RUNS_LOOKED_AT = 20
# From the first request of a process in a repeat to its last answer; several workers count side by side.
TIME = """
SELECT coalesce(sum(seconds), 0)::float8, coalesce(sum(n_tokens), 0)::bigint
  FROM (SELECT extract(epoch FROM max(recorded_at) - min(recorded_at - make_interval(
                   secs => coalesce(queued_seconds, 0) + coalesce(prefill_seconds, 0) + coalesce(decode_seconds, 0)
               ))) AS seconds,
               sum(n_tokens) AS n_tokens
          FROM runs_response
         WHERE repeat_id IN (SELECT id FROM runs_repeat WHERE run_id = %s) AND error_code = ''
         GROUP BY repeat_id, engine_process_id) AS part
"""
CHARS_OF_A_TOKEN = 3  # of a prompt, so that an estimate is rather too high; English has about 4
CASES_SIZED = 1000


@dataclass(frozen=True, slots=True)
class RunCosts:
    """What a run cost, in all and by repeat."""

    whole: Cost
    repeats: tuple[Cost, ...]


def read_costs(runs: Collection[RunRecord]) -> dict[int, RunCosts]:
    """Return by id what runs cost so far; those without a price are left out. Reads the endpoints.

    A run has the price that its endpoint had when it was asked for, or if there was none, the one of today.
    """
    prices = {run.pk: price for run in runs if run.source_id is None and (price := run.price or run.endpoint.price)}
    usage = read_usage(prices)
    return {
        run_id: RunCosts(make_cost(price, usage[run_id]), tuple(make_cost(price, [each]) for each in usage[run_id]))
        for run_id, price in prices.items()
    }


def make_cost(price: Mapping[str, str], usage: Sequence[Usage]) -> Cost:
    """Return what tokens cost at a price, with the text that says it."""
    whole = _add(usage)
    amount = price_usage(price, whole)
    known = None if amount is None else write_amount(amount)
    text = ESTIMATE.write("uncounted", n=whole.n_uncounted) if known is None else money(known, price["currency"])
    return Cost(
        amount=known, currency=price["currency"], n_calls=whole.n_calls, n_uncounted=whole.n_uncounted, text=text
    )


def add_up(costs: Sequence[Cost]) -> Cost:
    """Return the sum of costs in one currency, at least one; not known where a part of it is not."""
    currency, n_uncounted = costs[0].currency, sum(each.n_uncounted for each in costs)
    known = None
    if not n_uncounted:
        known = write_amount(sum((Decimal(each.amount or 0) for each in costs), Decimal(0)))
    return Cost(
        amount=known,
        currency=currency,
        n_calls=sum(each.n_calls for each in costs),
        n_uncounted=n_uncounted,
        text=ESTIMATE.write("uncounted", n=n_uncounted) if known is None else money(known, currency),
    )


def make_cost_estimate(
    price: Mapping[str, str], usage: Usage, n_calls: int, code: str, **facts: Any
) -> CostEstimate | None:
    """Return what n calls would cost if they were as those of a usage; None where that has no counts."""
    amount = price_usage(price, usage)
    if amount is None or not usage.n_calls:
        return None
    scaled = scale_amount(amount, n_calls, usage.n_calls)
    text = ESTIMATE.write(code, amount=money(scaled, price["currency"]), **facts)
    return CostEstimate(amount=scaled, currency=price["currency"], is_limit=code == "limit", text=text)


def sum_estimates(parts: Sequence[CostEstimate], code: str) -> CostEstimate:
    """Return the sum of estimates in one currency.

    code: of its text, with `_limit` after it where it is a limit.
    """
    amount, currency = write_amount(sum((Decimal(each.amount) for each in parts), Decimal(0))), parts[0].currency
    is_limit = any(each.is_limit for each in parts)
    text = ESTIMATE.write(f"{code}_limit" if is_limit else code, amount=money(amount, currency))
    return CostEstimate(amount=amount, currency=currency, is_limit=is_limit, text=text)


def limit_usage(n_chars: int, n_prompts: int, limit: int) -> Usage:
    """Return the most that calls use: prompts of so many characters in all, and answers as long as may be."""
    return Usage(n_calls=n_prompts, n_prompt=-(-n_chars // CHARS_OF_A_TOKEN), n_tokens=n_prompts * limit)


def estimate_money(
    version: SuiteVersionRecord, endpoint: EndpointRecord, profile: ProfileRecord, *, n_calls: int
) -> CostEstimate | None:
    """Return what calls of a suite's cases would cost, by its newest run; None without a price.

    First on the endpoint and under the profile, then on the endpoint, then elsewhere. Without any run of the suite,
    return the most that they can cost.
    """
    price = endpoint.price
    if not price:
        return None
    ended = RunRecord.objects.filter(suite_version=version, status=RunRecord.Status.FINISHED, source=None)
    here = ended.filter(endpoint=endpoint)
    for runs in (here.filter(profile__slug=profile.slug), here, ended):
        if (run := runs.select_related("endpoint").order_by("-id").first()) is not None:
            code = "run" if run.endpoint_id == endpoint.pk else "elsewhere"
            total = _add(read_usage([run.pk])[run.pk])
            facts = {"run": run.pk, "endpoint": run.endpoint.slug}
            if (cost := make_cost_estimate(price, total, n_calls, code, **facts)) is not None:
                return cost
    contents = list(version.cases.order_by("index").values_list("content", flat=True)[:CASES_SIZED])
    limit = profile.settings["sampling"].get(LIMIT, version.max_tokens)
    usage = limit_usage(sum(map(_count_chars, contents)), len(contents), limit)
    another = RunRecord.objects.filter(endpoint=endpoint, status=RunRecord.Status.FINISHED, source=None, is_judge=False)
    if (run := another.order_by("-id").first()) is not None:
        whole = _add(read_usage([run.pk])[run.pk])
        usual = replace(whole, n_cached=0, n_prompt=usage.n_prompt * whole.n_calls // len(contents))
        if (cost := make_cost_estimate(price, usual, n_calls, "usual", run=run.pk)) is not None:
            return cost
    return make_cost_estimate(price, usage, n_calls, "limit", limit=limit)


def _add(usage: Iterable[Usage]) -> Usage:
    parts = list(usage)
    return Usage(**{field.name: sum(getattr(each, field.name) for each in parts) for field in fields(Usage)})


def _count_chars(content: Mapping[str, Any]) -> int:
    """Count the characters of a case's messages and tools as JSON, which has more than the prompt."""
    return len(canonical_json({name: content.get(name) for name in ("messages", "tools")}))


@dataclass(frozen=True, slots=True)
class EngineTime:
    """seconds: of decoding, without starts; start_seconds: of all `n_starts` that were for this run."""

    seconds: float
    n_tokens: int
    n_starts: int
    start_seconds: float

    @property
    def minutes(self) -> float:
        return (self.seconds + self.start_seconds) / 60


def measure_engine_time(run: RunRecord) -> EngineTime:
    """Measure the engine time of a run so far. Calls to an external server start no engine."""
    with connection.cursor() as cursor:
        cursor.execute(TIME, [run.pk])
        seconds, n_tokens = cursor.fetchone()
    starts = [] if run.is_reported else _list_starts(run)
    return EngineTime(seconds, n_tokens, len(starts), sum(starts))


def _list_starts(run: RunRecord) -> list[float]:
    """Return the start times in seconds of engines that were started for this run, not reused."""
    served = RepeatRecord.engine_processes.through.objects.order_by("pk")
    first = served.filter(engineprocess=OuterRef("pk")).values("repeat__run")[:1]
    processes = EngineProcess.objects.filter(pk__in=served.filter(repeat__run=run).values("engineprocess"))
    own = processes.annotate(started_for=Subquery(first)).filter(started_for=run.pk)
    return list(own.values_list("start_seconds", flat=True))


def read_pace(version: SuiteVersionRecord, endpoint: EndpointRecord, *, batch_class: str) -> Pace:
    """Return how long a pass took in the newest run of this version, endpoint and batch class.

    Without such a run, one at batch size 1 is used: nothing is slower.
    """
    ended = RunRecord.objects.filter(
        suite_version=version, endpoint=endpoint, status=RunRecord.Status.FINISHED, source=None
    ).select_related("profile")
    starts = EngineProcess.objects.filter(repeats__run__endpoint=endpoint).order_by("-id")[:STARTS_READ]
    start = EngineProcess.objects.filter(pk__in=[each.pk for each in starts]).aggregate(at=Avg("start_seconds"))["at"]
    for wanted in dict.fromkeys((batch_class, "alone")):
        in_class = ended.filter(profile__settings__batch_class=wanted).order_by("-id")[:RUNS_LOOKED_AT]
        for run in in_class:
            time = measure_engine_time(run)
            n_passes = run.repeats.filter(cases=None, status=RunRecord.Status.FINISHED).count()
            if n_passes and time.seconds:
                return Pace(time.seconds / n_passes, time.n_tokens / n_passes, start)
    return Pace(start_seconds=start)


def estimate_run(*, suite: str, endpoint: str, profile: str = "pinned", repeats: int = 5) -> RunEstimate:
    """Estimate what a run would take, from the newest like it, else from another suite's on the endpoint.

    Raises as `find_order` does, which refuses a run that cannot be started.
    """
    order = find_order(suite=suite, endpoint=endpoint, profile=profile, repeats=repeats)
    version, target, batch_class = order.version, order.endpoint, order.profile.settings["batch_class"]
    pace, paced_by = read_pace(version, target, batch_class=batch_class), None
    if pace.pass_seconds is None:
        others = SuiteVersionRecord.objects.filter(
            suite__judged_suite=None, runs__endpoint=target, runs__status=RunRecord.Status.FINISHED
        )
        other = others.select_related("suite").order_by("-runs__id").first()
        if other is not None:
            other_pace = read_pace(other, target, batch_class=batch_class)
            seconds, paced_by = other_pace.pass_seconds, other.suite.slug
            scaled = None if seconds is None else seconds * version.n_cases / other.n_cases
            pace = replace(other_pace, pass_seconds=scaled, pass_tokens=None)  # its answers are of another length
    cost = estimate_cost(repeats, pace=pace, is_restarted=False, has_engine=not target.is_remote)
    known: dict[str, Any] = {
        "n_calls": order.n_responses,
        "tokens": None if cost.tokens is None else round(cost.tokens),
        "minutes": cost.minutes,
        "paced_by": None if cost.minutes is None else paced_by,
        "cost": estimate_money(version, target, order.profile, n_calls=order.n_responses),
    }
    judge = estimate_judge(version, repeats) if scoring.is_judged(version.scorer.spec) else None
    sentence = describe_estimate(**known, is_remote=target.is_remote)
    if judge is not None:
        sentence = f"{sentence} {_describe_judge(judge)}"
    return RunEstimate(**known, judge=judge, sentence=sentence)


def estimate_judge(version: SuiteVersionRecord, repeats: int) -> JudgeEstimate:
    """Return what the judge of a run would take, by the newest run in which it judged this suite."""
    spec, n_calls = scoring.judge_spec(version.scorer.spec) or {}, count_judgements(version, repeats)
    endpoint = named_endpoint(spec["endpoint"])
    before = RunRecord.objects.filter(
        endpoint=endpoint, suite_version__suite__judged_suite=version.suite_id, status=RunRecord.Status.FINISHED
    )
    run = before.order_by("-id").first()
    made = JudgeEstimate(endpoint=endpoint.slug, n_calls=n_calls, tokens=None, minutes=None, cost=None)
    if run is None:
        if not endpoint.price:
            return made
        contents = list(version.cases.order_by("index").values_list("content", flat=True)[:CASES_SIZED])
        n_chars = sum(map(_count_chars, contents))
        n_chars += len(contents) * (len(spec["template"]) + version.max_tokens * CHARS_OF_A_TOKEN)
        usage = limit_usage(n_chars, len(contents), spec["max_tokens"])
        cost = make_cost_estimate(endpoint.price, usage, n_calls, "limit", limit=spec["max_tokens"])
        return made.model_copy(update={"cost": cost})
    time, usage = measure_engine_time(run), _add(read_usage([run.pk])[run.pk])
    share = n_calls / usage.n_calls if usage.n_calls else 0.0
    cost = make_cost_estimate(endpoint.price, usage, n_calls, "run", run=run.pk) if endpoint.price else None
    known = {"tokens": round(share * time.n_tokens), "minutes": share * time.seconds / 60} if share else {}
    return made.model_copy(update={**known, "cost": cost})


def _describe_judge(judge: JudgeEstimate) -> str:
    known = {name: getattr(judge, name) for name in ("n_calls", "tokens", "minutes", "cost")}
    is_remote = named_endpoint(judge.endpoint).is_remote
    return describe_estimate(**known, paced_by=None, is_remote=is_remote, judge=judge.endpoint)
