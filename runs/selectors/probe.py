"""Probes as they are shown, and what a worker needs to know of one that it has claimed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Func, IntegerField

from evalboard.core import probe_call, probe_parameters, probe_states
from evalboard.core.errors import NotFound
from evalboard.core.probe_call import Call
from evalboard.core.vocabulary import Vocabulary
from runs.models import Case, EngineProcess, Probe, Worker
from runs.models import Vocabulary as Stored
from runs.selectors.work import Serving

CASES_OF_A_SUITE = 200  # asked by a canary where the suite has no reference set
TOKENS_SHOWN = 12

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A probe in short. `state` and `sentence` are what it found, empty where it has found nothing."""

    id: int
    endpoint: str
    kind: str
    profile: str
    profile_slug: str
    profile_version: int
    status: str
    state: str
    sentence: str
    created_by: str
    created_at: datetime
    finished_at: datetime | None

    @property
    def is_terminal(self) -> bool:
        return self.status in (Probe.Status.FINISHED, Probe.Status.FAILED)


@dataclass(frozen=True, slots=True)
class ProbeDetail:
    """A probe as far as it is.

    finding: {"state", "sentence", "numbers"}, None until there is one. n_done, n_total: calls. workers: the names of
    those that answered. waits_for: of those that are still to be asked. prompts: each one's last message.
    """

    row: ProbeRow
    parameters: dict[str, Any]
    finding: dict[str, Any] | None
    n_done: int
    n_total: int
    error: str
    workers: tuple[str, ...]
    waits_for: tuple[str, ...]
    prompts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CallRow:
    """One call with its answer. `tokens` are the first of it as people can see them, `worker` is a name."""

    prompt: int
    group: str
    round: int
    seed: int | None
    text: str
    tokens: tuple[str, ...]
    finish_reason: str
    batch_max: int | None
    worker: str
    fingerprint: str
    error: str


@dataclass(frozen=True, slots=True)
class ProbeWork:
    """What a worker still has to ask, round by round, and of whom. A call's `prompt` counts into `prompts`."""

    serving: Serving
    kind: str
    parameters: dict[str, Any]
    prompts: tuple[list[Message], ...]
    rounds: tuple[tuple[Call, ...], ...]


def probe_rows(
    *, after: int | None = None, before: int | None = None, limit: int, endpoint: str = "", kind: str = ""
) -> tuple[ProbeRow, ...]:
    """Up to `limit` probes, newest first: those older than `after`, or the nearest newer than `before`.

    endpoint, kind: only those of it.
    """
    found = Probe.objects.defer("answers").select_related("endpoint", "profile", "created_by")
    if endpoint:
        found = found.filter(endpoint__slug=endpoint)
    if kind:
        found = found.filter(kind=kind)
    if before is not None:
        return tuple(reversed([_row(probe) for probe in found.filter(pk__gt=before).order_by("id")[:limit]]))
    older = found if after is None else found.filter(pk__lt=after)
    return tuple(_row(probe) for probe in older.order_by("-id")[:limit])


def probes_to_mind(*, since: datetime) -> tuple[ProbeRow, ...]:
    """Those that failed, or found what somebody must act on: of an endpoint, kind and profile the newest that ended."""
    ended = Probe.objects.filter(created_at__gt=since, status__in=(Probe.Status.FINISHED, Probe.Status.FAILED))
    alike = ("endpoint_id", "profile_id", "kind")
    newest = ended.order_by(*alike, "-id").distinct(*alike)
    rows = map(_row, newest.defer("answers").select_related("endpoint", "profile", "created_by"))
    found = [row for row in rows if not row.state or probe_states.words(row.kind, row.state).standing == "bad"]
    return tuple(sorted(found, key=lambda row: -row.id))


def probe_detail(probe_id: int) -> ProbeDetail:
    """Raises NotFound."""
    probe = _probe(probe_id)
    prompts = _prompts(probe)
    calls = _answered(probe)
    asked = {call.worker for call in calls} | set(probe.waits_for)
    n_planned = len(probe_parameters.planned(probe.kind, probe.parameters, prompts))
    names = _names(asked)
    return ProbeDetail(
        row=_row(probe),
        parameters=probe.parameters,
        finding=probe.finding,
        n_done=len(calls),
        n_total=n_planned * (max(1, len(asked)) if probe.kind == Probe.Kind.ROUTING else 1),
        error=probe.error,
        workers=tuple(dict.fromkeys(names[call.worker] for call in calls if call.worker in names)),
        waits_for=tuple(names[worker] for worker in probe.waits_for if worker in names),
        prompts=tuple(str(messages[-1].get("content") or "") for messages in prompts),
    )


def probe_calls(probe_id: int) -> tuple[CallRow, ...]:
    """Every call of a probe in the order of its answers. Raises NotFound."""
    calls = [probe_call.from_json(stored) for stored in _probe(probe_id).answers]
    names = _names(call.worker for call in calls)
    words = _vocabularies(call.engine_process for call in calls)
    return tuple(
        CallRow(
            prompt=call.prompt,
            group=call.group,
            round=call.round,
            seed=call.seed,
            text=call.text,
            tokens=_drawn(call, words.get(call.engine_process)),
            finish_reason=call.finish_reason,
            batch_max=call.batch_max,
            worker=names.get(call.worker, ""),
            fingerprint=call.fingerprint,
            error=call.error,
        )
        for call in calls
    )


def probe_state(probe_id: int) -> str:
    """What `probe_detail` is made of, in short: equal texts, equal details. Raises NotFound."""
    n_answers = Func("answers", function="jsonb_array_length", output_field=IntegerField())
    found = Probe.objects.filter(pk=probe_id).annotate(n=n_answers)
    row = found.values_list("status", "n", "waits_for", "error", "finished_at").first()
    if row is None:
        raise NotFound(f"There is no probe {probe_id}.")
    return "|".join(map(str, (probe_id, *row)))


def probe_work(probe_id: int, *, worker_id: int) -> ProbeWork:
    """What this worker still has to ask: what is not answered, of a routing probe by this worker itself."""
    probe = _probe(probe_id)
    prompts = _prompts(probe)
    planned = probe_parameters.planned(probe.kind, probe.parameters, prompts)
    return ProbeWork(
        serving=_serving(probe),
        kind=probe.kind,
        parameters=probe.parameters,
        prompts=prompts,
        rounds=_rounds_left(probe, planned, worker_id),
    )


def _rounds_left(probe: Probe, planned: Iterable[Call], worker_id: int) -> tuple[tuple[Call, ...], ...]:
    answered = _answered(probe)
    if probe.kind == Probe.Kind.ROUTING:
        others = [call for call in answered if call.worker != worker_id]
        if others and worker_id not in probe.waits_for:
            return ()  # whom it waited for last is gone, and what the others answered is all there is
        answered = [call for call in answered if call.worker == worker_id]
    done = {call.round for call in answered}
    rounds = groupby(planned, key=lambda call: call.round)
    return tuple(tuple(calls) for index, calls in rounds if index not in done)


def _answered(probe: Probe) -> list[Call]:
    """The calls that an engine has seen, without those that stand for a worker that is gone."""
    return [call for call in map(probe_call.from_json, probe.answers) if call.engine_process is not None]


def _serving(probe: Probe) -> Serving:
    endpoint = probe.endpoint
    return Serving(
        endpoint=endpoint,
        model_path=endpoint.model_path,
        model_repo=endpoint.model_repo,
        model_revision=endpoint.model_revision,
        profile_settings=probe.profile.settings,
        max_tokens=probe_parameters.sampling(probe.kind, probe.parameters, "")["max_tokens"],
        stop=(),
    )


def _probe(probe_id: int) -> Probe:
    probe = Probe.objects.select_related("endpoint", "profile", "created_by").filter(pk=probe_id).first()
    if probe is None:
        raise NotFound(f"There is no probe {probe_id}.")
    return probe


def _prompts(probe: Probe) -> tuple[list[Message], ...]:
    texts = probe_parameters.texts(probe.kind, probe.parameters)
    if texts is not None:
        return tuple([{"role": "user", "content": text}] for text in texts)
    asked = probe.parameters
    cases = Case.objects.filter(
        suite_version__suite__slug=asked["suite"], suite_version__number=asked["suite_version"]
    ).order_by("index")
    found = list(cases.filter(is_reference=True)[:CASES_OF_A_SUITE]) or list(cases[:CASES_OF_A_SUITE])
    return tuple(case.content["messages"] for case in found)


def _row(probe: Probe) -> ProbeRow:
    finding = probe.finding or {"state": "", "sentence": ""}
    return ProbeRow(
        id=probe.pk,
        endpoint=probe.endpoint.slug,
        kind=probe.kind,
        profile=str(probe.profile),
        profile_slug=probe.profile.slug,
        profile_version=probe.profile.version,
        status=probe.status,
        state=finding["state"],
        sentence=finding["sentence"],
        created_by=probe.created_by.get_username() if probe.created_by else "",
        created_at=probe.created_at,
        finished_at=probe.finished_at,
    )


def _names(worker_ids: Iterable[int | None]) -> dict[int | None, str]:
    known = {worker for worker in worker_ids if worker is not None}
    return dict(Worker.objects.filter(pk__in=known).values_list("pk", "name"))


def _vocabularies(process_ids: Iterable[int | None]) -> dict[int | None, Vocabulary]:
    """The words that each engine process chooses among, where they are stored; each tokenizer's read once."""
    processes = EngineProcess.objects.filter(pk__in=set(process_ids), vocabulary__isnull=False)
    stored_as = dict(processes.values_list("pk", "vocabulary"))
    stored = Stored.objects.filter(pk__in=set(stored_as.values()))
    read = {each.pk: Vocabulary.unpack(bytes(each.data)) for each in stored}
    return {process: read[vocabulary] for process, vocabulary in stored_as.items() if vocabulary in read}


def _drawn(call: Call, words: Vocabulary | None) -> tuple[str, ...]:
    ids = call.token_ids[:TOKENS_SHOWN]
    return tuple(f"⟨token {token}⟩" for token in ids) if words is None else tuple(words.draw(ids))
