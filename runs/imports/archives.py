"""Restore a run from its archive, with all traces and manifests (docs/formats.md).

An archive is trusted like our own engines, so only those that come with the program are read.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from io import BytesIO
from typing import Any

import numpy as np
from django.db import transaction

from evalboard.core import scoring
from evalboard.core.archive import ArchivedResponse, RunArchive
from evalboard.core.errors import NotFound
from evalboard.core.profile import is_known_by_log
from evalboard.core.stats import make_mark
from evalboard.core.trace import TokenTrace
from runs.imports.buckets import archived_endpoint, archived_profile, imports_worker
from runs.models import (
    BucketRecord,
    EngineProcess,
    FingerprintRecord,
    ImportRecord,
    Model,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    Shard,
    SuiteVersionRecord,
    VocabularyRecord,
)
from runs.store import BlockSlot, Key, bulk, changes, history, imported, take_as_long_as_it_takes, traces
from runs.work import look_through, rollup
from runs.work.settings_seen import see_settings

Json = Mapping[str, Any]
# Fields of the archive with the same name in a response.
PLAIN = (
    *("attempt", "seed_sent", "n_tokens", "n_prompt_tokens", "n_cached_tokens", "n_preemptions"),
    *("batch_min", "batch_max", "queued_seconds", "prefill_seconds", "decode_seconds", "call"),
)


def store_archive(content: bytes, *, name: str, labels: Mapping[str, str], user: Any) -> RunRecord:
    """Store an archive's run, or return the run that it was stored as before.

    name: of its file. labels: added to its own. Raises ArchiveDamaged, or NotFound if its suite's version is not
    stored; then nothing is.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    archive = RunArchive(BytesIO(content))
    archive.check()
    with transaction.atomic():
        take_as_long_as_it_takes()
        known = RunRecord.objects.filter(source__digest=sha256).first()
        if known is not None:
            return known
        source = ImportRecord.objects.create(
            format=imported.EXPORT,
            tool=archive.manifest["run"].get("tool") or imported.EXPORT_TOOL,
            digest=sha256,
            files=[{"name": name, "size": len(content), "sha256": sha256}],
            created_by=user,
        )
        run = _store_run(archive.manifest, source, labels)
        repeats = _store_repeats(run, archive.manifest)
        rows = _store_responses(run, repeats, archive)
        for repeat in repeats.values():
            rollup.store_columns(repeat)
            _score(repeat, run.suite_version, [row for row in rows if row.repeat == repeat.index])
        _end_run(run, archive.manifest)
    return run


def _store_run(manifest: Json, source: ImportRecord, labels: Mapping[str, str]) -> RunRecord:
    of, suite = manifest["run"], manifest["suite"]
    is_reported = of.get("is_reported", any(is_known_by_log(each["manifest"]) for each in manifest["fingerprints"]))
    version = SuiteVersionRecord.objects.filter(suite__slug=suite["slug"], digest=suite["digest"]).first()
    if version is None:
        raise NotFound(f"Suite {suite['slug']} has no version with the cases of this export; push it first.")
    return RunRecord.objects.create(
        suite_version=version,
        endpoint=archived_endpoint(manifest["endpoint"]),
        profile=archived_profile(manifest["profile"]),
        seed=of["seed"],
        labels={**of["labels"], **labels},
        source=source,
        is_one_draw=of.get("is_one_draw", False),
        is_reported=is_reported,
        is_log=of.get("is_log", is_reported and manifest["endpoint"]["engine"] != "openai"),
        status=of["status"],
        failure=of["failure"] or "",
        created_by=source.created_by,
        ran_at=datetime.fromisoformat(of["ran_at"]),
        started_at=_instant(of["started_at"]),
        finished_at=_instant(of["finished_at"]),
    )


def _store_repeats(run: RunRecord, manifest: Json) -> dict[int, RepeatRecord]:
    """Store the repeats that are in the archive, with a shard each; by their numbers."""
    exported = [each for each in manifest["repeats"] if each["is_exported"]]
    repeats = RepeatRecord.objects.bulk_create(
        RepeatRecord(run=run, index=each["index"], status=each["status"], finished_at=_instant(each["finished_at"]))
        for each in exported
    )
    Shard.objects.bulk_create(
        Shard(
            repeat=repeat,
            first=0,
            last=run.suite_version.n_cases - 1,
            status=Shard.Status.FINISHED,
            attempt=1,
            n_done=each["n_responses"],
        )
        for repeat, each in zip(repeats, exported, strict=True)
    )
    return {repeat.index: repeat for repeat in repeats}


def _score(repeat: RepeatRecord, version: SuiteVersionRecord, rows: Sequence[ArchivedResponse]) -> None:
    """Score a repeat again; scores that only a log could give are taken from the archive."""
    if scoring.scores_here(version.scorer.spec):
        rollup.score_repeat(repeat, version.scorer)
        return
    scores = np.full(version.n_cases, np.nan)
    reasons: list[str | None] = [None] * version.n_cases
    for row in rows:
        scores[row.case_index] = np.nan if row.score is None else row.score
        reasons[row.case_index] = row.row["reason"]
    rollup.store_scores(repeat, version.scorer, scores, reasons)


def _store_responses(
    run: RunRecord, repeats: Mapping[int, RepeatRecord], archive: RunArchive
) -> list[ArchivedResponse]:
    processes = _store_processes(archive)
    different: dict[Key, TokenTrace] = {}
    rows = list(archive.responses())
    for row in rows:
        trace = archive.trace(row)
        if trace is not None:
            different.setdefault((row.case_index, trace.digest), trace)
    members = sorted(different.items(), key=lambda member: member[0][0])
    places = traces.store_blocks(run.pk, members, is_final=True)
    bulk.copy_rows([_response(repeats[row.repeat], row, processes, places) for row in rows])
    for index, repeat in repeats.items():
        named = {row.row["provenance"]["engine_process"] for row in rows if row.repeat == index} - {None}
        repeat.engine_processes.set(processes[each] for each in named)
    return rows


def _response(
    repeat: RepeatRecord, row: ArchivedResponse, processes: Mapping[str, EngineProcess], places: Mapping[Key, BlockSlot]
) -> ResponseRecord:
    whole, by = row.row, row.row["provenance"]
    unmeasured = whole.get("unmeasured") or {"reason": "", "block": None}
    place = places[row.case_index, bytes.fromhex(row.trace_digest)] if row.trace_digest else None
    error = whole["error"] or {"code": "", "detail": ""}
    return ResponseRecord(
        repeat=repeat,
        case_index=row.case_index,
        engine_process=processes.get(by["engine_process"]),
        text=row.text or "",
        reasoning=whole["reasoning"],
        n_reasoning_tokens=whole["n_reasoning_tokens"],
        is_truncated=whole["is_truncated"],
        finish_reason=whole["finish_reason"] or "",
        ending=whole.get("ending") or "",
        error_code=error["code"],
        error_detail=error["detail"],
        trace_block_id=place and place.block_id,
        trace_slot=place and place.slot,
        text_digest=_bytes(whole["text_digest"]),
        trace_reason=unmeasured["reason"],
        unmeasured_trace=unmeasured["block"] and base64.b64decode(unmeasured["block"]),
        trace_digest=_bytes(row.trace_digest or whole["text_digest"]),  # where no tokens are measured, as of a log
        prompt_digest=_bytes(by["prompt_digest"]),
        request_id=by["request_id"] or "",
        marks=make_mark(whole["marks"]),
        is_vouched=whole["is_vouched"],
        recorded_at=datetime.fromisoformat(whole["recorded_at"]),
        **{name: by[name] for name in PLAIN},
    )


def _store_processes(archive: RunArchive) -> dict[str, EngineProcess]:
    """Store engine processes by their ids in the archive; models and fingerprints are not duplicated."""
    manifest, worker = archive.manifest, imports_worker()
    models = {
        each["digest"]: Model.objects.get_or_create(digest=each["digest"], defaults=_fields(each))[0]
        for each in manifest["models"]
    }
    fingerprints = {
        each["digest"]: FingerprintRecord.objects.get_or_create(digest=each["digest"], defaults=_fields(each))[0]
        for each in manifest["fingerprints"]
    }
    buckets = {
        each["id"]: BucketRecord.objects.get_or_create(
            model=models[each["model"]],
            fingerprint=fingerprints[each["fingerprint"]],
            batch_class=each["batch_class"],
        )[0]
        for each in manifest["buckets"]
    }
    return {
        each["id"]: EngineProcess.objects.create(
            worker=worker,
            bucket=buckets[each["bucket"]],
            vocabulary=_vocabulary(archive, each["vocabulary"]),
            started_at=datetime.fromisoformat(each["started_at"]),
            stopped_at=_instant(each["stopped_at"]),
            last_words=each["last_words"] or "",
            **{name: each[name] for name in ("manifest", "pins", "self_checks", "start_seconds")},
        )
        for each in manifest["engine_processes"]
    }


def _fields(stated: Json) -> dict[str, Any]:
    """Return the fields of a new record with this digest."""
    return {name: value for name, value in stated.items() if name not in ("id", "digest")}


def _vocabulary(archive: RunArchive, digest: str | None) -> VocabularyRecord | None:
    if digest is None:
        return None
    known = VocabularyRecord.objects.filter(digest=digest).first()
    if known is not None:
        return known
    packed, n_tokens = archive.packed_vocabulary(digest)
    return VocabularyRecord.objects.create(digest=digest, n_tokens=n_tokens, data=packed)


def _end_run(run: RunRecord, manifest: Json) -> None:
    run.bucket = rollup.largest_bucket(run)
    if run.is_reported and not run.is_log:
        rollup.note_what_was_served(run)
    run.settings_seen = manifest["run"].get("settings_seen") or see_settings(run).to_json()
    look_through(run)
    run.save(update_fields=["bucket", "settings_seen", "strays", "strays_so_far", "unsteady"])
    text = f"Read from an export of run {manifest['run']['id']} of another installation."
    history.note(run.pk, "imported", text)
    changes.run_changed(run_id=run.pk)


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _bytes(digest: str | None) -> bytes | None:
    return None if digest is None else bytes.fromhex(digest)
