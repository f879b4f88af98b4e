"""Probes as they are shown, and what a worker needs to know of one that it has claimed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.db.models import Func, IntegerField, Q
from django.urls import reverse

from evalboard.contract import probe as contract
from evalboard.contract.parts import CostEstimate, Done
from evalboard.contract.probe_kinds import OF_EACH_WORKER
from evalboard.core.cost import Usage
from evalboard.core.digest import canonical_json
from evalboard.core.images import prompt_text
from evalboard.core.probes import ProbeExchange, choose_sampling, list_prompt_texts, parse_call, plan_calls
from evalboard.core.trace import Vocabulary
from evalboard.wording import probe_states
from evalboard.wording.probe import describe_both, describe_estimate
from runs.models import (
    AnswerSet,
    Case,
    EngineProcess,
    ForcedScoringRecord,
    ProbeRecord,
    RunRecord,
    VocabularyRecord,
    WorkerRecord,
)
from runs.probes import hops
from runs.run import limit_usage, make_cost, make_cost_estimate, sum_estimates
from runs.store import RecordList, require_row
from runs.work import Serving, paused_until, read_pause

PROBE_ORDERS = {"id": "id", "endpoint": "endpoint__slug", "kind": "kind", "status": "status"}

MAX_SUITE_CASES = 200  # asked by a canary or an audit where the suite has no reference set
TOKENS_SHOWN = 12
CANARIES_SHOWN = 40
KNOWN_FOR = timedelta(days=14)

Message = Mapping[str, Any]
Role = AnswerSet.Role


@dataclass(frozen=True, slots=True)
class ProbeWork:
    """The calls that a worker still has to make, by round. A call's `prompt` indexes `prompts`.

    answered: the calls of the rounds before.
    """

    serving: Serving
    kind: str
    parameters: dict[str, Any]
    prompts: tuple[list[Message], ...]
    rounds: tuple[tuple[ProbeExchange, ...], ...]
    answered: tuple[ProbeExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class CanaryLine:
    """One canary and its time. moved, noise: in nats, None with too few runs."""

    id: int
    at: datetime
    state: str
    moved: float | None
    noise: float | None


def sortable_probes(*, endpoint: str = "", kind: str = "") -> RecordList[contract.ProbeRow]:
    """Return the probes of an endpoint or kind, or all, as a list that can be sorted."""
    probes = ProbeRecord.objects.defer("answers").select_related("endpoint", "profile", "created_by")
    if endpoint:
        probes = probes.filter(endpoint__slug=endpoint)
    if kind:
        probes = probes.filter(kind=kind)
    return RecordList(probes, _rows, PROBE_ORDERS)


def newest_probes(*, endpoint: str) -> tuple[contract.ProbeRow, ...]:
    """List of each profile and kind the newest probe of an endpoint that ended, newest first."""
    ended = ProbeRecord.objects.filter(
        endpoint__slug=endpoint, status__in=(ProbeRecord.Status.FINISHED, ProbeRecord.Status.FAILED)
    )
    newest = ended.order_by("profile_id", "kind", "-id").distinct("profile_id", "kind")
    rows = map(_row, newest.defer("answers").select_related("endpoint", "profile", "created_by"))
    return tuple(sorted(rows, key=lambda row: -int(row.id)))


def probes_to_mind(*, since: datetime) -> tuple[contract.ProbeRow, ...]:
    """List probes that need action, newest first: the newest ended one per endpoint, profile and kind."""
    ended = ProbeRecord.objects.filter(
        created_at__gt=since, status__in=(ProbeRecord.Status.FINISHED, ProbeRecord.Status.FAILED)
    )
    alike = ("endpoint_id", "profile_id", "kind")
    newest = ended.order_by(*alike, "-id").distinct(*alike)
    rows = map(_row, newest.defer("answers").select_related("endpoint", "profile", "created_by"))
    return tuple(sorted(filter(_needs_somebody, rows), key=lambda row: -int(row.id)))


def probes_before(endpoints: Collection[str], *, until: datetime) -> tuple[contract.ProbeRow, ...]:
    """List what was known of endpoints at a time: the newest probe per kind within two weeks before.

    Those that ended by then; a determinism probe of any age, as time alone changes no bit. In the order of the
    endpoints' names, then of the kinds'.
    """
    ended = ProbeRecord.objects.filter(
        Q(finished_at__gt=until - KNOWN_FOR) | Q(kind=ProbeRecord.Kind.DETERMINISM),
        endpoint__slug__in=endpoints,
        finished_at__lte=until,
    )
    newest = ended.order_by("endpoint__slug", "kind", "-id").distinct("endpoint__slug", "kind")
    return tuple(map(_row, newest.defer("answers").select_related("endpoint", "profile", "created_by")))


def _needs_somebody(row: contract.ProbeRow) -> bool:
    return row.finding is None or probe_states.describe_state(row.kind, row.finding.state).standing == "bad"


def probe_detail(probe_id: int) -> contract.Probe:
    """Return a probe and its results so far. Raises NotFound."""
    probe = _probe(probe_id)
    prompts = _prompts(probe)
    calls = _answered(probe)
    worker_ids = {call.worker for call in calls} | set(probe.waits_for)
    n_planned = len(plan_calls(probe.kind, probe.parameters, prompts))
    names = _names(worker_ids)
    n_total = n_planned * (max(1, len(worker_ids)) if _asks_each_worker(probe) else 1)
    if probe.kind == ProbeRecord.Kind.CAPABILITY and probe.status == ProbeRecord.Status.FINISHED:
        n_total = len(calls)  # what was answered before made the others needless
    sets = _sets(probe)
    price = probe.price or probe.endpoint.price
    pause = read_pause(probe.endpoint_id) if probe.status == ProbeRecord.Status.QUEUED else None
    return contract.Probe(
        **_common_fields(probe),
        parameters=probe.parameters,
        progress=_progress_of(sets) if sets else Done(n_done=len(calls), n_total=n_total),
        finding=contract.ProbeFinding(**probe.finding) if probe.finding else None,
        error=probe.error or None,
        hop=hops.hop_of(probe),
        control=hops.describe_control(probe),
        cost=make_cost(price, [_usage_of(calls)]) if price else None,
        expected_cost=_expect(probe, price, prompts, n_total) if price and not _has_ended(probe) else None,
        workers=tuple(dict.fromkeys(names[call.worker] for call in calls if call.worker in names)),
        waits_for=tuple(names[worker] for worker in probe.waits_for if worker in names),
        rests_until=None if pause is None else pause.until,
        pause=pause,
        sets=sets,
        prompts=tuple(prompt_text(messages[-1].get("content")) for messages in prompts),
    )


def _has_ended(probe: ProbeRecord) -> bool:
    return probe.status in (ProbeRecord.Status.FINISHED, ProbeRecord.Status.FAILED)


def _usage_of(calls: Iterable[ProbeExchange]) -> Usage:
    """Return the token counts of the calls that were answered."""
    answered = [call for call in calls if not call.error]
    counted = [call for call in answered if call.n_tokens is not None and call.n_prompt_tokens is not None]
    return Usage(
        n_calls=len(answered),
        n_uncounted=len(answered) - len(counted),
        n_prompt=sum(call.n_prompt_tokens or 0 for call in counted),
        n_cached=sum(call.n_cached_tokens or 0 for call in counted),
        n_tokens=sum(call.n_tokens or 0 for call in counted),
        n_reasoning=sum(call.n_reasoning_tokens or 0 for call in counted),
    )


def _expect(
    probe: ProbeRecord, price: Mapping[str, str], prompts: Sequence[list[Message]], n_calls: int
) -> CostEstimate | None:
    """Return what a probe would cost: by the newest of its kind there, else the most that it can cost."""
    before = ProbeRecord.objects.filter(endpoint=probe.endpoint, kind=probe.kind, status=ProbeRecord.Status.FINISHED)
    newest = (before.filter(pk__lt=probe.pk) if probe.pk else before).order_by("-id").first()
    if newest is not None:
        usage = _usage_of(_answered(newest))
        n = usage.n_calls if probe.kind == ProbeRecord.Kind.CAPABILITY else n_calls
        if (cost := make_cost_estimate(price, usage, n, "probe", probe=newest.pk)) is not None:
            return cost
    n_chars = sum(len(canonical_json(messages)) for messages in prompts)
    limit = choose_sampling(probe.kind, probe.parameters, "")["max_tokens"]
    return make_cost_estimate(price, limit_usage(n_chars, len(prompts), limit), n_calls, "limit", limit=limit)


def estimate_calls(probes: Sequence[ProbeRecord]) -> contract.ProbeEstimate:
    """Return what a probe that is not stored yet would take, with that of its bypass after it."""
    own, *others = map(_estimate_one, probes)
    if not others:
        return own
    [around], name = others, probes[1].endpoint.slug
    costs = [each.cost for each in (own, around) if each.cost is not None]
    is_sum = len(costs) == 2 and costs[0].currency == costs[1].currency
    cost = sum_estimates(costs, "both") if is_sum else None
    return own.model_copy(
        update={
            "n_calls": own.n_calls + around.n_calls,
            "n_tokens": own.n_tokens + around.n_tokens,
            "cost": cost,
            "sentence": describe_both(own.sentence, around.sentence, "" if cost is None else cost.text, bypass=name),
        }
    )


def _estimate_one(probe: ProbeRecord) -> contract.ProbeEstimate:
    """Those of a verification are its runs' calls."""
    prompts = _prompts(probe)
    n_calls = len(plan_calls(probe.kind, probe.parameters, prompts))
    price = probe.endpoint.price
    limit = choose_sampling(probe.kind, probe.parameters, "")["max_tokens"] if n_calls else 0
    most = limit_usage(sum(len(canonical_json(messages)) for messages in prompts), len(prompts), limit)
    n_tokens = -(-(most.n_prompt + most.n_tokens) * n_calls // max(len(prompts), 1))
    cost = _expect(probe, price, prompts, n_calls) if price and n_calls else None
    is_search = bool(probe.parameters.get("search"))
    return contract.ProbeEstimate(
        n_calls=n_calls,
        n_tokens=n_tokens,
        is_search=is_search,
        cost=cost,
        sentence=describe_estimate(n_calls, n_tokens, "" if cost is None else cost.text, is_search=is_search),
    )


def probe_calls(probe_id: int) -> tuple[contract.ProbeCall, ...]:
    """List every call of a probe in the order of its answers. Raises NotFound."""
    calls = [parse_call(stored) for stored in _probe(probe_id).answers]
    names = _names(call.worker for call in calls)
    words = _vocabularies(call.engine_process for call in calls)
    return tuple(
        contract.ProbeCall.from_record(
            call,
            tokens=_drawn(call, words.get(call.engine_process)),
            finish_reason=call.finish_reason or None,
            worker=names.get(call.worker) or None,
            fingerprint=call.fingerprint or None,
            backend=call.backend or None,
            error=call.error or None,
        )
        for call in calls
    )


def probe_state(probe_id: int) -> str:
    """Return what `probe_detail` is made of, in short: equal texts, equal details. Raises NotFound."""
    n_answers = Func("answers", function="jsonb_array_length", output_field=IntegerField())
    rows = ProbeRecord.objects.filter(pk=probe_id).annotate(n=n_answers, paused=paused_until("endpoint"))
    others = ("bypass_of__status", "bypass_probes__status")
    row = require_row(
        rows.values_list("status", "n", "waits_for", "error", "finished_at", "paused", *others),
        f"There is no probe {probe_id}.",
    )
    sets = AnswerSet.objects.filter(probe=probe_id).values_list("run__status", "scoring__status")
    return "|".join(map(str, (probe_id, *row, *sets)))


def probe_tokens(probe_id: int, token_ids: Collection[int]) -> dict[int, str]:
    """Return readable tokens by id; empty if no engine process of the probe has a vocabulary."""
    answers = ProbeRecord.objects.values_list("answers", flat=True).get(pk=probe_id) if token_ids else []
    processes = {call["engine_process"] for call in answers}
    process = EngineProcess.objects.filter(pk__in=processes - {None}, vocabulary__isnull=False).first()
    if process is None or process.vocabulary is None:
        return {}
    words = Vocabulary.unpack(bytes(process.vocabulary.data))
    return dict(zip(token_ids, words.draw(token_ids), strict=True))


def canaries(probe_id: int) -> tuple[CanaryLine, ...]:
    """List the last canaries up to this one with its endpoint, profile and parameters, oldest first."""
    one = ProbeRecord.objects.only("endpoint", "profile", "parameters").get(pk=probe_id)
    same = ProbeRecord.objects.filter(
        endpoint=one.endpoint_id,
        profile=one.profile_id,
        kind=ProbeRecord.Kind.CANARY,
        parameters=one.parameters,
        status=ProbeRecord.Status.FINISHED,
        pk__lte=probe_id,
    )
    return tuple(_canary_line(each) for each in reversed(same.defer("answers").order_by("-pk")[:CANARIES_SHOWN]))


def probe_work(probe_id: int, *, worker_id: int) -> ProbeWork:
    """Return the calls that this worker still has to make: unanswered ones, its own if each is probed."""
    probe = _probe(probe_id)
    prompts = _prompts(probe)
    planned = plan_calls(probe.kind, probe.parameters, prompts)
    return ProbeWork(
        serving=_serving(probe),
        kind=probe.kind,
        parameters=probe.parameters,
        prompts=prompts,
        rounds=_rounds_left(probe, planned, worker_id),
        answered=tuple(_answered(probe)),
    )


def _rounds_left(
    probe: ProbeRecord, planned: Iterable[ProbeExchange], worker_id: int
) -> tuple[tuple[ProbeExchange, ...], ...]:
    answered = _answered(probe)
    if _asks_each_worker(probe):
        others = [call for call in answered if call.worker != worker_id]
        if others and worker_id not in probe.waits_for:
            return ()  # whom it waited for last is gone, and what the others answered is all there is
        answered = [call for call in answered if call.worker == worker_id]
    done = {call.round for call in answered}
    rounds = groupby(planned, key=lambda call: call.round)
    return tuple(tuple(calls) for index, calls in rounds if index not in done)


def _asks_each_worker(probe: ProbeRecord) -> bool:
    return probe.kind in OF_EACH_WORKER and not probe.endpoint.is_remote


def _answered(probe: ProbeRecord) -> list[ProbeExchange]:
    """Return the calls that were sent, without placeholders for workers that are gone."""
    return [call for call in map(parse_call, probe.answers) if call.was_sent]


def _serving(probe: ProbeRecord) -> Serving:
    endpoint = probe.endpoint
    return Serving(
        endpoint=endpoint,
        **endpoint.checkpoint(),
        profile_settings=probe.profile.settings,
        max_tokens=choose_sampling(probe.kind, probe.parameters, "")["max_tokens"],
        stop=(),
    )


def _probe(probe_id: int) -> ProbeRecord:
    return require_row(
        ProbeRecord.objects.select_related("endpoint", "profile", "created_by").filter(pk=probe_id),
        f"There is no probe {probe_id}.",
    )


def _prompts(probe: ProbeRecord) -> tuple[list[Message], ...]:
    texts = list_prompt_texts(probe.kind, probe.parameters)
    if texts is not None:
        return tuple([{"role": "user", "content": text}] for text in texts)
    return tuple(case.content["messages"] for case in asked_cases(probe))


def asked_cases(probe: ProbeRecord) -> list[Case]:
    """Return the suite's cases that a probe uses, in order; empty if it has its own texts."""
    if "suite" not in probe.parameters:
        return []
    slug, number = probe.parameters["suite"], probe.parameters["suite_version"]
    version_cases = Case.objects.filter(suite_version__suite__slug=slug, suite_version__number=number).order_by("index")
    if "cases" in probe.parameters:
        return list(version_cases.filter(case_id__in=probe.parameters["cases"]))
    reference = list(version_cases.filter(is_reference=True)[:MAX_SUITE_CASES])
    return reference or list(version_cases[:MAX_SUITE_CASES])


def _sets(probe: ProbeRecord) -> tuple[contract.ProbeSet, ...]:
    if probe.kind != ProbeRecord.Kind.VERIFY:
        return ()
    slugs = {Role.ENDPOINT: probe.endpoint.slug, Role.CONTROL: probe.parameters["reference"]}
    return tuple(
        contract.ProbeSet(
            role=each.role,
            endpoint=slugs.get(Role(each.role)) or probe.parameters[each.role],
            run=None if each.run is None else str(each.run.pk),
            run_status=None if each.run is None else each.run.status,
            forced=None if each.scoring is None else str(each.scoring.pk),
            forced_status=None if each.scoring is None else each.scoring.status,
        )
        for each in probe.sets.select_related("run", "scoring")
    )


def _progress_of(sets: Sequence[contract.ProbeSet]) -> Done:
    n_runs = sum(each.run_status in RunRecord.TERMINAL for each in sets)
    n_scored = sum(each.forced_status == ForcedScoringRecord.Status.FINISHED for each in sets)
    return Done(n_done=n_runs + n_scored, n_total=2 * len(sets))


def _rows(probes: Iterable[ProbeRecord]) -> tuple[contract.ProbeRow, ...]:
    return tuple(map(_row, probes))


def _row(probe: ProbeRecord) -> contract.ProbeRow:
    document = probe.finding
    finding = contract.ProbeFound(state=document["state"], sentence=document["sentence"]) if document else None
    return contract.ProbeRow(**_common_fields(probe), finding=finding)


def _common_fields(probe: ProbeRecord) -> dict[str, Any]:
    """Return the fields of `ProbeAsked`."""
    return {
        "id": str(probe.pk),
        "endpoint": probe.endpoint.slug,
        "kind": probe.kind,
        "profile": probe.profile.slug,
        "profile_version": probe.profile.version,
        "status": probe.status,
        "created_by": probe.created_by.get_username() if probe.created_by else None,
        "created_at": probe.created_at,
        "finished_at": probe.finished_at,
        "url": reverse("probe", args=[probe.pk]),
    }


def _canary_line(canary: ProbeRecord) -> CanaryLine:
    finding: dict[str, Any] = canary.finding or {}
    numbers = finding["numbers"]
    return CanaryLine(canary.pk, canary.created_at, finding["state"], numbers.get("statistic"), numbers.get("noise"))


def _names(worker_ids: Iterable[int | None]) -> dict[int | None, str]:
    known = {worker for worker in worker_ids if worker is not None}
    return dict(WorkerRecord.objects.filter(pk__in=known).values_list("pk", "name"))


def _vocabularies(process_ids: Iterable[int | None]) -> dict[int | None, Vocabulary]:
    """The words that each engine process chooses among, where they are stored; each tokenizer's read once."""
    processes = EngineProcess.objects.filter(pk__in=set(process_ids), vocabulary__isnull=False)
    stored_as = dict(processes.values_list("pk", "vocabulary"))
    stored = VocabularyRecord.objects.filter(pk__in=set(stored_as.values()))
    read = {each.pk: Vocabulary.unpack(bytes(each.data)) for each in stored}
    return {process: read[vocabulary] for process, vocabulary in stored_as.items() if vocabulary in read}


def _drawn(call: ProbeExchange, words: Vocabulary | None) -> tuple[str, ...]:
    ids = call.token_ids[:TOKENS_SHOWN]
    return tuple(f"⟨token {token}⟩" for token in ids) if words is None else tuple(words.draw(ids))
