"""An archive of Evalboard as a run in memory: what the server that wrote it stores (docs/formats.md)."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from evalboard.core.archive import ArchivedResponse, RunArchive, reading
from evalboard.core.compare import NO_BUCKET, Columns, ResponseFacts
from evalboard.core.profile import is_known_by_log
from evalboard.core.stats import make_mark
from evalboard.core.trace import TokenTrace
from evalboard.logged import runs
from evalboard.logged.memory import LogBucket, LogRepeat, LogRun, LogScorer, LogStore, LogVersion

Json = Mapping[str, Any]


def add_archive(store: LogStore, archive: RunArchive, *, source: str) -> LogRun:
    """Return the archive as a run of the store. source: its digest. Raises ArchiveDamaged."""
    archive.check_members()
    with reading("it is not what it should be"):
        return _Adding(store, archive).add(source)


class _Adding:
    def __init__(self, store: LogStore, archive: RunArchive) -> None:
        self._store, self._archive, self._manifest = store, archive, archive.manifest
        self._version = self._put_version()
        self._buckets = self._put_buckets()
        self._words: dict[str, int | None] = {
            each["id"]: self._put_vocabulary(each["vocabulary"]) for each in self._manifest["engine_processes"]
        }
        self._traces: dict[str, TokenTrace] = {}

    def add(self, source: str) -> LogRun:
        about, manifest = self._manifest["run"], self._manifest
        is_reported = about.get(
            "is_reported", any(is_known_by_log(each["manifest"]) for each in manifest["fingerprints"])
        )
        profile = manifest["profile"]
        vocabularies: dict[int, int] = {}
        for each in manifest["engine_processes"]:
            if (words := self._words[each["id"]]) is not None:
                vocabularies.setdefault(self._buckets[each["bucket"]].pk, words)
        rows: defaultdict[int, list[ArchivedResponse]] = defaultdict(list)
        for row in self._archive.responses():
            rows[row.repeat].append(row)
        run = LogRun(
            pk=len(self._store.runs) + 1,
            model_name=next((each["name"] for each in manifest["models"]), ""),
            notes=(),
            suite_version=self._version,
            endpoint=manifest["endpoint"]["slug"],
            profile=self._store.put_profile(profile["slug"], profile["version"], profile["settings"]),
            source_id=source,
            is_one_draw=about.get("is_one_draw", False),
            started_at=_instant(about["started_at"]),
            finished_at=_instant(about["finished_at"]),
            ran_at=datetime.fromisoformat(about["ran_at"]),
            vocabularies=vocabularies,
            repeats=[self._repeat_of(each, rows[each["index"]]) for each in manifest["repeats"] if each["is_exported"]],
            status=about["status"],
            settings_seen=about.get("settings_seen"),
            seed=about["seed"],
            is_reported=is_reported,
            is_log=about.get("is_log", is_reported and manifest["endpoint"]["engine"] != "openai"),
        )
        self._store.keep(run)
        return run

    def _put_version(self) -> LogVersion:
        stated, parsed = self._manifest["suite"], self._archive.suite()
        [own] = [each for each in self._manifest["scorers"] if each["is_own"]]
        return self._store.shelf.put(parsed, LogScorer(own["spec"], own["digest"]), number=stated["version"])

    def _put_buckets(self) -> dict[str, LogBucket]:
        models = {
            each["digest"]: self._store.put_model(
                name=each["name"],
                revision=each.get("revision") or "",
                digest=each["digest"],
                template_digest=each["template_digest"] or "",
                files=each["files"],
            )
            for each in self._manifest["models"]
        }
        prints = {
            each["digest"]: self._store.put_fingerprint(each["digest"], each["label"], each["manifest"])
            for each in self._manifest["fingerprints"]
        }
        return {
            each["id"]: self._store.put_bucket(models[each["model"]], prints[each["fingerprint"]], each["batch_class"])
            for each in self._manifest["buckets"]
        }

    def _put_vocabulary(self, digest: str | None) -> int | None:
        if digest is None:
            return None
        return self._store.put_vocabulary(digest, self._archive.packed_vocabulary(digest)[0])

    def _repeat_of(self, stated: Json, rows: Iterable[ArchivedResponse]) -> LogRepeat:
        n, own = len(self._version.cases), self._version.scorer.digest
        texts, digests = np.zeros((n, 16), np.uint8), np.zeros((n, 16), np.uint8)
        buckets, marks, is_filtered = np.full(n, NO_BUCKET, np.int64), np.zeros(n, np.uint8), np.zeros(n, np.bool_)
        answers: list[ResponseFacts | None] = [None] * n
        names = {own, *(each["scorer"] for each in stated["scores"])}
        scores = {name: np.full(n, np.nan) for name in names}
        for row in rows:
            whole, by, case = row.row, row.row["provenance"], row.case_index
            code = whole["error"]["code"] if whole["error"] else ""
            answers[case] = self._facts_of(row, code)
            is_filtered[case] = code == runs.PROMPT_FILTERED
            if code:
                continue
            texts[case] = np.frombuffer(bytes.fromhex(whole["text_digest"]), np.uint8)
            digests[case] = np.frombuffer(bytes.fromhex(row.trace_digest or whole["text_digest"]), np.uint8)
            buckets[case], marks[case] = self._buckets[by["bucket"]].pk, make_mark(whole.get("marks") or ())
            given = {own: {"score": row.score}, **(whole.get("other_scores") or {})}
            for name in names & given.keys():
                value = given[name]["score"]
                scores[name][case] = np.nan if value is None else value
        chosen = np.ones(n, np.bool_) if stated["cases"] is None else np.isin(np.arange(n), stated["cases"])
        return LogRepeat(
            index=stated["index"],
            chosen=chosen,
            status=stated["status"],
            columns=Columns(stated["index"], texts.view("<u8"), digests.view("<u8"), buckets, marks),
            is_filtered=is_filtered,
            answers=answers,
            scores=scores,
            company=self._find_company(rows),
        )

    def _facts_of(self, row: ArchivedResponse, code: str) -> ResponseFacts:
        whole, by = row.row, row.row["provenance"]
        digest = by["prompt_digest"]
        return ResponseFacts(
            place=self._trace_of(row),
            finish_reason=whole["finish_reason"] or "",
            ending=whole.get("ending") or "",
            error_code=code,
            prompt_digest=None if digest is None else bytes.fromhex(digest),
            n_prompt_tokens=by["n_prompt_tokens"],
            seed_sent=by["seed_sent"],
            vocabulary_id=self._words.get(by["engine_process"]),
            n_reasoning_tokens=whole.get("n_reasoning_tokens"),
            text=row.text or "",
        )

    def _trace_of(self, row: ArchivedResponse) -> TokenTrace | None:
        """Return the trace of a response; that which several repeats share once."""
        if row.trace_digest is None:
            return None
        if row.trace_digest not in self._traces:
            trace = self._archive.trace(row)
            if trace is None:
                return None
            self._traces[row.trace_digest] = trace
        return self._traces[row.trace_digest]

    @staticmethod
    def _find_company(rows: Iterable[ArchivedResponse]) -> Hashable:
        """Return a key for the batches of a repeat, equal to the server's."""
        by = [row.row["provenance"] for row in rows if not row.row["error"]]
        sizes = Counter(each["batch_max"] for each in by if each["batch_max"] is not None)
        return frozenset(each["engine_process"] for each in by), tuple(sorted(sizes.items()))


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
