"""Store who answered a logged run: endpoint, profile, buckets, and an engine process per bucket."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Max
from django.db.models.functions import Now

from evalboard.contract.catalogue import name_adapted
from evalboard.core.digest import digest_json
from evalboard.importers.records import LoggedResponse, LoggedRun
from evalboard.logged.backends import Known, known_parts, read_backend
from evalboard.logged.runs import make_profile, name_endpoints
from evalboard.logged.suites import slug_of
from evalboard.logged.times import Times
from runs.models import (
    EndpointRecord,
    EngineProcess,
    ImportRecord,
    Model,
    ProfileRecord,
    VocabularyRecord,
    WorkerRecord,
)
from runs.served import bucket_of
from runs.store import imported


def endpoint_of(model: Model) -> EndpointRecord:
    """Return where the model answers, according to logs: one endpoint a model. No engine is behind it."""
    named = {"model_repo": model.name, "line": model.line}
    about = {"engine": EndpointRecord.Engine.IMPORTED, "pool": imported.POOL, **named}
    # The second where another model's name has come to the same, or a person has an endpoint of that name.
    for name in name_endpoints(model.name, model.digest):
        endpoint, _ = EndpointRecord.objects.get_or_create(slug=name, defaults=about)
        if (endpoint.engine, endpoint.model_repo) == (EndpointRecord.Engine.IMPORTED, model.name):
            break
    return endpoint


def archived_endpoint(stated: Mapping[str, Any]) -> EndpointRecord:
    """Return where an archived run was decoded, as an endpoint of its name with no engine behind it."""
    adapter = stated.get("model_adapter", "")  # archives of earlier versions have none
    model = stated["model_repo"] or stated["model_path"].rstrip("/").rsplit("/", 1)[-1]
    model = name_adapted(model, adapter) if adapter else model
    about = {name: stated[name] for name in ("dtype", "quantization", "line", "max_model_len")}
    about |= {"engine": EndpointRecord.Engine.IMPORTED, "pool": imported.POOL, "model_repo": model}
    for name in (stated["slug"], slug_of(f"imported {stated['slug']}")):  # the second where a person has the first
        endpoint, _ = EndpointRecord.objects.get_or_create(slug=name, defaults=about)
        if endpoint.engine == EndpointRecord.Engine.IMPORTED:
            break
    return endpoint


def archived_profile(stated: Mapping[str, Any]) -> ProfileRecord:
    """Return the profile of these settings; one that is not here any more becomes a version of `imported`."""
    known = ProfileRecord.objects.filter(slug=stated["slug"], digest=stated["digest"]).first()
    return known or _imported_profile(stated["settings"], stated["title"])


def profile_of(logged: LoggedRun) -> ProfileRecord:
    """Return the version of profile `imported` with the log's sampling, creating it if needed."""
    return _imported_profile(make_profile(logged), "Imported: decoded elsewhere, sampled as the log says")


def _imported_profile(settings: dict[str, Any], title: str) -> ProfileRecord:
    digest = digest_json(settings)
    versions = ProfileRecord.objects.filter(slug=imported.PROFILE)
    if known := versions.filter(digest=digest).first():
        return known
    newest = versions.aggregate(version=Max("version"))["version"] or 0
    return ProfileRecord.objects.create(
        slug=imported.PROFILE, version=newest + 1, title=title, settings=settings, digest=digest
    )


class LoggedServing:
    """The engine processes that represent a logged run's backends: one per bucket."""

    def __init__(
        self, logged: LoggedRun, model: Model, source: ImportRecord, words: VocabularyRecord | None, times: Times
    ) -> None:
        self._logged, self._model, self._source, self._words = logged, model, source, words
        self._times = times
        self._worker = imports_worker()
        self._processes: dict[Known, EngineProcess] = {}

    def by(self, response: LoggedResponse) -> EngineProcess:
        known = known_parts(response.served_by)
        if known not in self._processes:
            self._processes[known] = self._open(known)
        return self._processes[known]

    @property
    def processes(self) -> list[EngineProcess]:
        return list(self._processes.values())

    def _open(self, known: Known) -> EngineProcess:
        theirs = [
            response.served_by
            for response in self._logged.responses
            if not response.error and known_parts(response.served_by) == known
        ]
        about = {"tool": self._logged.tool, "base_url": self._logged.base_url}
        return EngineProcess.objects.create(
            worker=self._worker,
            bucket=bucket_of(self._model, known, log=self._source.digest),
            vocabulary=self._words,
            manifest=read_backend(theirs).manifest(**about),
            start_seconds=0.0,
            started_at=self._times.ran_at,
            stopped_at=self._times.ended_at,
        )


def imports_worker() -> WorkerRecord:
    """Return the worker that represents those of logs and archives."""
    stopped = {"host": "", "pid": 0, "pool": imported.POOL, "seen_at": Now(), "stopped_at": Now()}
    return WorkerRecord.objects.get_or_create(name=imported.WORKER, defaults=stopped)[0]
