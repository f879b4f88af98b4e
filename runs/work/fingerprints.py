"""Recognise fingerprints that identify calls, not servers: each answer has another one."""

from collections import Counter, defaultdict

from django.db.models import Count

from evalboard.core.profile import MIN_NAMED, names_calls
from evalboard.logged.backends import Known
from evalboard.wording import run as wording
from runs.catalogue import finds_call_names
from runs.models import EngineProcess, Event, RepeatRecord, ResponseRecord, RunRecord
from runs.served import bucket_of, key_of_run
from runs.store import history, imported


def settle_fingerprints(run: RunRecord) -> bool:
    """Merge the buckets of an external run whose server gives each answer a new fingerprint.

    Where there are too few answers to tell, the newest check of the endpoint does. Return whether they were merged;
    columns and scores are then for the caller to make again. The run's history says so, and where more than half of the
    answers have one of their own.
    """
    answers = ResponseRecord.objects.filter(repeat__run=run, error_code="", engine_process__isnull=False).order_by()
    n_each = dict(answers.values_list("engine_process").annotate(n=Count("pk")))
    related = ("bucket__model", "bucket__fingerprint")
    processes = list(EngineProcess.objects.filter(pk__in=n_each).select_related(*related).order_by("pk"))
    prints: Counter[str] = Counter()
    for process in processes:
        if name := process.bucket.fingerprint.manifest.get("source", {}).get("system_fingerprint"):
            prints[name] += n_each[process.pk]
    is_checked = len(prints) == prints.total() > 1 and finds_call_names(run.endpoint_id)
    if not is_checked and (prints.total() < MIN_NAMED or 2 * len(prints) <= prints.total()):
        return False
    text = wording.fingerprints_of_calls(len(prints), prints.total(), endpoint=run.endpoint.slug)
    history.note_once(run.pk, imported.CALL_FINGERPRINTS, text, level=Event.Level.WARNING)
    if not is_checked and not names_calls(len(prints), prints.total()):
        return False
    alike: dict[Known, list[EngineProcess]] = defaultdict(list)
    for process in processes:
        source = process.bucket.fingerprint.manifest["source"]
        names = ("backend", "backend_from", "model_reported")
        alike[tuple((name, source[name]) for name in names if name in source)].append(process)
    for known, theirs in alike.items():
        _merge(run, known, theirs)
    return True


def _merge(run: RunRecord, known: Known, processes: list[EngineProcess]) -> None:
    """Let the first of these processes have all their answers."""
    joined, *others = processes
    joined.bucket = bucket_of(joined.bucket.model, known, run=key_of_run(run))
    joined.manifest = {"source": {k: v for k, v in joined.manifest["source"].items() if k != "system_fingerprint"}}
    joined.save(update_fields=["bucket", "manifest"])
    ResponseRecord.objects.filter(repeat__run=run, engine_process__in=others).update(engine_process=joined)
    for repeat in RepeatRecord.objects.filter(run=run, engine_processes__in=processes).distinct():
        repeat.engine_processes.add(joined)
    EngineProcess.objects.filter(pk__in=[each.pk for each in others]).delete()
