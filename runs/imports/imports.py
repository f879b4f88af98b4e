"""Import other tools' logs as runs: a log is stored whole or not at all, and only once."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from django.db import connection, transaction

from evalboard import wings
from evalboard.contract.manifest import MovedField
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import is_one_draw
from evalboard.core.trace import pack_selection
from evalboard.importers import formats
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from evalboard.logged.runs import choose_cases, digest_of_files, end_repeat, end_run, list_sent, refuse_unfit
from evalboard.logged.suites import MatchedSuite, place
from evalboard.logged.times import Times, times_of
from evalboard.logged.words import trace_by_ids
from evalboard.wording import run as wording
from evalboard.wording.manifest import render_moved
from evalboard.wording.numbers import counted
from runs.imports import identity, import_reading, responses
from runs.imports.buckets import LoggedServing, endpoint_of, profile_of
from runs.imports.import_suites import SHELF
from runs.imports.requests import complete_run, is_of_requests
from runs.imports.responses import Responses
from runs.models import CaseColumns, Event, ImportRecord, RepeatRecord, RunRecord, Shard
from runs.run import MAX_LABELS, label_problems
from runs.served import Words, model_of
from runs.store import history, imported, storable, take_as_long_as_it_takes
from runs.webhooks import news
from runs.work import look_through, own_open_judgings, own_open_scorings, rollup
from runs.work.endings import settle_endings
from runs.work.settings_seen import see_settings

TURN = int.from_bytes(hashlib.sha256(b"imports").digest()[:8], signed=True)
NO_TIME = "The log has no plausible time, so the run has the time of its import."
MAX_LABEL_NAME_CHARS, MAX_LABEL_CHARS = 40, 200
SHARD_STATUS = {RunRecord.Status.FAILED: Shard.Status.FAILED, RunRecord.Status.CANCELLED: Shard.Status.CANCELLED}


def import_logs(
    *,
    files: Sequence[LogFile],
    format: str = formats.AUTO,  # noqa: A002 - the name that it has for people
    suite: str | None = None,
    scale: str = "",
    second_of: str = "",
    user: Any,
    is_wanted: Callable[[], bool] = lambda: True,
    on_stored: Callable[[ImportRecord, bool], object] = lambda source, is_new: None,
) -> tuple[ImportRecord, list[RunRecord], bool]:
    """Import the runs of a log. Return False, with the stored runs, if they were imported before.

    scale: of scores beyond 0 to 1, as in 0..10. second_of: the id of the run whose side this is a second log of. suite:
    whose cases the log has responses of; without a name it is found or made from the log. An eval that was imported
    before it had ended is stored anew in that run's place. `is_wanted` is asked while the log is read, and ends that by
    saying no. `on_stored` is called in the transaction that stores it, with the import and whether it is new.
    Raises InvalidInput with fields, among them the names of files that cannot be read, or what `import_reading` raises,
    NotFound, or Conflict where the same eval is stored with other answers; then nothing is stored.
    """
    with import_reading.taken_in():
        name, logged = import_reading.read(files, format=format, scale=scale, is_wanted=is_wanted)
        first = _find_first(second_of, logged)
        with transaction.atomic():
            source, runs, is_new = _store(files, name, logged, suite=suite, scale=scale, user=user)
            if first is not None:
                _tell_second(first, runs[0], logged[0])
            on_stored(source, is_new)
        return source, runs, is_new


def _find_first(second_of: str, logged: Sequence[LoggedRun]) -> RunRecord | None:
    """Return the run that a log is the second of. Raises InvalidInput for none, or a log of several runs."""
    if not second_of:
        return None
    first = (
        RunRecord.objects.filter(pk=int(second_of)).first() if second_of.isdecimal() and len(second_of) <= 18 else None
    )
    if first is None or len(logged) != 1:
        why = "Must be the id of a run." if first is None else "The log holds several runs; send one alone."
        raise InvalidInput("The log is no second one of a run.", fields={"second_of": why})
    return first


def _tell_second(first: RunRecord, run: RunRecord, logged: LoggedRun) -> None:
    """Mark a run as a second log of another's side if suite, endpoint and profile are equal."""
    names = ("suite_version_id", "endpoint_id", "profile_id")
    if run.pk != first.pk and all(getattr(run, name) == getattr(first, name) for name in names):
        run.second_of = first
        run.save(update_fields=["second_of"])
        return
    suite, fields = (
        first.suite_version.suite.slug,
        {"second_of": "Must be a run of the same suite, model and settings."},
    )
    text = f"The log is no second one of run {first.pk}: {'; '.join(_list_others(first, run))}."
    if run.suite_version_id != first.suite_version_id and _may_be_of(first, logged):
        lacks = "" if all(case.messages for case in logged.cases) else "The log does not hold its prompts. "
        fields["suite"] = f"{lacks}If its questions are those of {suite}, import it with --suite {suite}."
        text = f"{text} {fields['suite']}"
    raise InvalidInput(text, fields=fields)


def _list_others(first: RunRecord, run: RunRecord) -> Iterator[str]:
    """Yield how a run differs from the side it should be a second log of: suite, model, settings."""
    if run.pk == first.pk:
        yield "it is the log of that run"
    if run.suite_version_id != first.suite_version_id:
        yield f"its suite is {run.suite_version} and not {first.suite_version}"
    if run.endpoint_id != first.endpoint_id:
        one, other = ((each.model_name, each.slug) for each in (run.endpoint, first.endpoint))
        what, at = ("endpoint", 1) if one[0] == other[0] else ("model", 0)
        yield f"its {what} is {one[at]} and not {other[at]}"
    if run.profile_id != first.profile_id:
        ours, theirs = (each.profile.settings.get("sampling", {}) for each in (first, run))
        both = ((f"sampling.{name}", ours.get(name), theirs.get(name)) for name in sorted({*ours, *theirs}))
        moved = [MovedField(*each) for each in both if each[1] != each[2]]
        yield f"its settings are others ({render_moved(moved) or f'profile {run.profile} and not {first.profile}'})"


def _may_be_of(first: RunRecord, logged: LoggedRun) -> bool:
    """Tell whether a log, with the suite of a run named, becomes a run of the same version."""
    try:
        return (
            logged.has_texts
            and place(logged, first.suite_version.suite.slug, SHELF, source="").version == first.suite_version
        )
    except InvalidInput:
        return False


def _store(
    files: Sequence[LogFile],
    name: str,
    logged: Sequence[LoggedRun],
    *,
    suite: str | None,
    scale: str,
    user: Any,
) -> tuple[ImportRecord, list[RunRecord], bool]:
    if not logged:
        raise InvalidInput("The log holds no run.", fields={files[0].name: "holds no run"})
    if name == "batch" and is_of_requests(logged):
        with transaction.atomic():
            take_as_long_as_it_takes()
            _take_turns()
            return complete_run(files, logged[0], suite=suite)
    digest = digest_of_files(files, name, suite=suite, scale=scale)
    with transaction.atomic():
        take_as_long_as_it_takes()
        _take_turns()
        known = ImportRecord.objects.filter(digest=digest).first()
        if known is not None:
            return known, list(known.runs.order_by("id")), False
        source = ImportRecord.objects.create(
            format=name,
            tool=storable(logged[0].tool)[:100],
            digest=digest,
            files=[{"name": storable(file.name), "size": file.size, "sha256": file.sha256} for file in files],
            created_by=user,
        )
        runs = [_store_once(logged=each, source=source, suite=suite, user=user) for each in logged]
        if source.runs.exists():
            return source, runs, True
        source.delete()
        return ImportRecord.objects.get(runs=runs[0]), runs, False


def _store_once(*, logged: LoggedRun, source: ImportRecord, suite: str | None, user: Any) -> RunRecord:
    """Return the run of an eval: the stored one, or a new one that replaces an earlier state."""
    stored = identity.find(logged, suite=suite)
    if stored is None:
        return store_log(logged=logged, source=source, suite=suite, user=user)
    replaced = identity.make_room(logged, stored)
    if replaced:
        return store_log(logged=replace(logged, notes=(replaced, *logged.notes)), source=source, suite=suite, user=user)
    source.notes = [*source.notes, f"One eval of it was imported before, as run {stored.pk}, and is stored once."]
    source.save(update_fields=["notes"])
    return stored


def store_log(*, logged: LoggedRun, source: ImportRecord, suite: str | None, user: Any) -> RunRecord:
    """Store one run of a log as it ended there, and add to the notes of its import.

    Belongs in the transaction that made the import. Raises InvalidInput or NotFound.
    """
    refuse_unfit(logged, suite)
    placed = place(logged, suite, SHELF, source=source.digest)
    model, times = model_of(logged.model, logged.revision), times_of(logged, imported_at=source.created_at)
    run = RunRecord.objects.create(
        suite_version=placed.version,
        endpoint=endpoint_of(model),
        profile=profile_of(logged),
        labels=_labels(logged),
        source=source,
        is_reported=True,
        is_log=True,
        is_one_draw=is_one_draw(logged.sampling, list_sent(logged)),
        log_ids=identity.ids_of(logged),
        log_digest=identity.content_of(logged),
        is_cancel_wanted=logged.status == "cancelled",
        failure=storable(logged.failure),
        created_by=user,
        ran_at=times.ran_at,
        started_at=times.started_at,
    )
    answers = {(each.repeat, placed.indexes[each.case_id]): each for each in logged.responses}
    words = Words.locked(model) if logged.has_texts else None
    trace_of = trace_by_ids if words is None else words.trace
    decoded = {key: trace for key, each in answers.items() if not each.error and (trace := trace_of(each)) is not None}
    served = LoggedServing(logged, model, source, None if words is None else words.store(), times)
    repeats = _store_repeats(run, logged, placed)
    links = responses.store_responses(run, repeats, answers, decoded, served, times)
    settle_endings(run, is_final=True)
    for repeat in repeats:
        _end_repeat(run, repeat, logged, answers, links.get(repeat.pk, set()), times)
    _end_run(run, repeats, logged)
    for follow in wings.gather("runs.{}", "AFTER_IMPORT"):
        follow(run, repeats, answers, decoded, user=user)
    _tell(run, source, logged, placed, times)
    if run.is_terminal:
        news.tell_of_end(run.pk)
    return run


def _take_turns() -> None:
    """Lock imports until the transaction ends, so that concurrent imports of one log store it once."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [TURN])


def _labels(logged: LoggedRun) -> dict[str, str]:
    """Return the log's labels, cut to our limits."""
    cut = {
        storable(name)[:MAX_LABEL_NAME_CHARS]: storable(value)[:MAX_LABEL_CHARS]
        for name, value in list(logged.labels.items())[:MAX_LABELS]
    }
    return cut if not label_problems(cut) else {}


def _store_repeats(run: RunRecord, logged: LoggedRun, placed: MatchedSuite) -> list[RepeatRecord]:
    """Repeats with one shard each, which the import stored in one go; done is what the log has.

    A repeat that not all cases were to have is one of chosen cases.
    """
    n_cases = run.suite_version.n_cases
    repeats = RepeatRecord.objects.bulk_create(
        RepeatRecord(run=run, index=index, cases=None if chosen.all() else pack_selection(chosen))
        for index, chosen in enumerate(choose_cases(logged, placed.indexes, n_cases), start=1)
    )
    n_logged = Counter(each.repeat for each in logged.responses)
    status = SHARD_STATUS.get(RunRecord.Status(logged.status), Shard.Status.FINISHED)
    Shard.objects.bulk_create(
        Shard(repeat=repeat, first=0, last=n_cases - 1, status=status, attempt=1, n_done=n_logged[repeat.index])
        for repeat in repeats
    )
    return repeats


def _end_repeat(
    run: RunRecord, repeat: RepeatRecord, logged: LoggedRun, answers: Responses, process_ids: set[int], times: Times
) -> None:
    """Pack, score and end a repeat."""
    repeat.engine_processes.set(process_ids)
    n_missing = rollup.store_columns(repeat)
    responses.store_scores(run, repeat, logged, answers)
    repeat.status = end_repeat(logged, n_missing)
    repeat.finished_at = times.ended_at
    repeat.save(update_fields=["status", "finished_at"])


def _end_run(run: RunRecord, repeats: Sequence[RepeatRecord], logged: LoggedRun) -> None:
    """A run that its tool ended well is incomplete all the same where responses are missing."""
    if own_open_scorings(run).exists() or own_open_judgings(run).exists():  # it ends with its scores
        run.status = RunRecord.Status.RUNNING
    else:
        run.status, run.finished_at = end_run(logged, [repeat.status for repeat in repeats]), repeats[0].finished_at
    run.bucket = rollup.largest_bucket(run)
    run.settings_seen = see_settings(run).to_json()
    look_through(run)
    run.save(update_fields=["status", "finished_at", "bucket", "settings_seen", "strays", "strays_so_far", "unsteady"])


def _tell(run: RunRecord, source: ImportRecord, logged: LoggedRun, placed: MatchedSuite, times: Times) -> None:
    """The run's history, and the notes of its import."""
    names = ", ".join(file["name"] for file in source.files)
    n_repeats = CaseColumns.objects.filter(repeat__run=run).count()
    text = f"Read from a log of {source.tool} ({names}): {placed.version}, {counted(n_repeats, 'repeat')}"
    history.note(run.pk, "imported", f"{text}, {logged.status} there.")
    timeless = [] if times.started_at or times.finished_at else [NO_TIME]
    notes = list(dict.fromkeys([*map(storable, logged.notes), *placed.notes, *timeless]))
    for note in notes:
        history.note(run.pk, "import_note", note)
    for code, text in _unclean(logged):
        history.note(run.pk, code, text, level=Event.Level.WARNING)
    source.notes = list(dict.fromkeys([*source.notes, *notes]))
    source.save(update_fields=["notes"])


def _unclean(logged: LoggedRun) -> Iterator[tuple[str, str]]:
    there = [each for each in logged.responses if not each.error]
    n_without = sum(not each.positions for each in there)
    reasons = Counter(each.trace_reason for each in there if each.trace_reason)
    if text := wording.without_tokens("The log", n_without, len(there), reasons):
        yield imported.TEXT_ONLY, text
    if dropped := Counter(name for each in there for name in each.dropped):
        yield imported.DROPPED, wording.dropped_fields(dropped)
    marked = Counter(mark for each in there for mark in each.flags)
    if marked:
        yield imported.UNCLEAN, wording.unclean_responses(marked, len(there))
