"""Store an external server's answers during a run: an engine process per backend, and traces.

Several workers may store answers of one model at once. A new token or backend is added under the lock of the model's
row, before any shard is locked and never while one is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core.digest import digest_json
from evalboard.core.profile import is_serving_known
from evalboard.core.trace import TokenTrace
from evalboard.importers.records import LoggedResponse, ServedBy
from evalboard.logged.backends import Backend, Known, known_parts, read_backend
from runs.models import (
    BucketRecord,
    EndpointRecord,
    EngineProcess,
    Model,
    RepeatRecord,
    RunRecord,
    VocabularyRecord,
    WorkerRecord,
)
from runs.served.backends import bucket_of, model_of
from runs.served.words import Words, remove_unneeded


@dataclass(frozen=True, slots=True)
class PlacedAnswer:
    """Who gave an answer, and its trace; None where the server gave no tokens."""

    process: EngineProcess
    trace: TokenTrace | None


def bucket_of_answer(endpoint: EndpointRecord, served: ServedBy) -> BucketRecord | None:
    """Return the bucket of an answer to a call outside any run; None if its stack is not named."""
    known = known_parts(heard_of(endpoint, served))
    if not is_serving_known({"source": dict(known)}):
        return None
    return bucket_of(_model_served(endpoint), known)


def heard_of(endpoint: EndpointRecord, served: ServedBy) -> ServedBy:
    """Return an answer's backend facts, without the fingerprint if the endpoint ignores it."""
    if not endpoint.ignores_fingerprint:
        return served
    parts = {name: value for name, value in served.parts.items() if name != "system_fingerprint"}
    return replace(served, system_fingerprint="", parts=parts)


class LiveServing:
    """The engine processes that represent the backends of one run, as one worker sees them."""

    def __init__(self, *, worker: WorkerRecord, run_id: int) -> None:
        self._run = RunRecord.objects.select_related("endpoint").get(pk=run_id)
        self._worker = worker
        self._model = _model_served(self._run.endpoint)
        self._words: Words | None = None
        self._processes: dict[Known, EngineProcess] = {}
        self._backends: dict[Known, Backend] = {}

    @property
    def run_id(self) -> int:
        return self._run.pk

    def place(self, answers: Sequence[LoggedResponse], *, repeat_id: int) -> list[PlacedAnswer]:
        """Return the process and trace of each of a repeat's answers, storing new backends and tokens.

        No answer may be an error. May not be called with a shard's row locked.
        """
        by_backend: dict[Known, list[LoggedResponse]] = {}
        answers = [replace(each, served_by=heard_of(self._run.endpoint, each.served_by)) for each in answers]
        for answer in answers:
            by_backend.setdefault(known_parts(answer.served_by), []).append(answer)
        words = self._words
        if words is None or not (by_backend.keys() <= self._processes.keys() and all(map(words.has_all, answers))):
            words = self._extend(by_backend, repeat_id)
        self._narrow_parts(by_backend)
        return [PlacedAnswer(self._processes[known_parts(answer.served_by)], words.trace(answer)) for answer in answers]

    def close(self) -> None:
        """Say that these backends were heard of until now."""
        close_processes([process.pk for process in self._processes.values()])

    def _extend(self, by_backend: dict[Known, list[LoggedResponse]], repeat_id: int) -> Words:
        """Take the tokens of these answers among the model's, and open the processes of new backends."""
        # Before the lock: an import that has made one of these rows, and wants the model next, is waited for here.
        buckets = {known: bucket_of(self._model, known, run=key_of_run(self._run)) for known in by_backend}
        known_words, self._words = self._words, None  # what is not stored in the end is not known either
        with transaction.atomic():
            words = Words.locked(self._model, known=known_words)
            every = [answer for answers in by_backend.values() for answer in answers]
            before = words.row_id
            if not all(map(words.has_all, every)):
                for answer in every:
                    words.trace(answer)
                words.store()
            vocabulary = None if words.row_id is None else VocabularyRecord.objects.only("pk").get(pk=words.row_id)
            opened = {
                known: self._process_of(buckets[known], read_backend([each.served_by for each in theirs]))
                for known, theirs in by_backend.items()
                if known not in self._processes
            }
            links = RepeatRecord.engine_processes.through
            links.objects.bulk_create(
                (links(repeat_id=repeat_id, engineprocess_id=process.pk) for process in opened.values()),
                ignore_conflicts=True,
            )
            if vocabulary is not None and (words.row_id != before or opened):
                _point_to(vocabulary, self._run)
        for known, process in opened.items():
            self._processes[known] = process
            self._backends[known] = read_backend([each.served_by for each in by_backend[known]])
        self._words = words
        return words

    def _process_of(self, bucket: BucketRecord, backend: Backend) -> EngineProcess:
        """The process of this worker, run and bucket: the one that it had before, or a new one."""
        mine = EngineProcess.objects.filter(worker=self._worker, bucket=bucket, repeats__run=self._run)
        return mine.order_by("id").first() or EngineProcess.objects.create(
            worker=self._worker,
            bucket=bucket,
            manifest=backend.manifest(base_url=self._run.endpoint.base_url),
            start_seconds=0.0,
        )

    def _narrow_parts(self, by_backend: dict[Known, list[LoggedResponse]]) -> None:
        """Take out of a process's manifest what not all of its answers say alike."""
        for known, answers in by_backend.items():
            before = self._backends[known]
            parts = {
                name: value
                for name, value in before.parts.items()
                if all(each.served_by.parts.get(name) == value for each in answers)
            }
            if len(parts) < len(before.parts):
                after = self._backends[known] = Backend(known, parts)
                process = self._processes[known]
                process.manifest = after.manifest(base_url=self._run.endpoint.base_url)
                process.save(update_fields=["manifest"])


def key_of_run(run: RunRecord) -> str:
    """Return a unique key for a run's unnamed stack."""
    return digest_json({"run": run.pk, "created_at": run.created_at.isoformat()})


def close_processes(process_ids: Sequence[int]) -> None:
    """Mark these processes as stopped now: they represent backends, which we cannot observe."""
    EngineProcess.objects.filter(pk__in=process_ids).update(stopped_at=Now())


def _model_served(endpoint: EndpointRecord) -> Model:
    return model_of(endpoint.model_repo, endpoint.model_revision, line=endpoint.line)


def _point_to(vocabulary: VocabularyRecord, run: RunRecord) -> None:
    """Let all processes of a run use the vocabulary that contains the tokens of each."""
    theirs = EngineProcess.objects.filter(repeats__run=run).distinct()
    named = dict(theirs.values_list("pk", "vocabulary"))
    EngineProcess.objects.filter(pk__in=list(named)).update(vocabulary=vocabulary)
    superseded = {pk for pk in named.values() if pk not in (None, vocabulary.pk)}
    if superseded:
        remove_unneeded(superseded)
