"""Made-up runs for bench_compare: written as rows in bulk, since nothing of making them is measured.

Blocks are packed by the codec as a worker packs them, 32 traces each. A run's repeats are equal to the bit, as pinned
ones are, so all five refer to one stored trace; text is a sentence, for comparing reads no more of it.
"""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone
from numpy.typing import NDArray

from evalboard.core import digest
from evalboard.core.stats import run_points
from evalboard.core.trace import (
    Ending,
    TokenTrace,
    encode_block,
    pack_buckets,
    pack_digests,
    pack_reasons,
    pack_scores,
    pack_vocabulary,
)
from runs.models import (
    Case,
    CaseColumns,
    EndpointRecord,
    EngineProcess,
    ProfileRecord,
    RepeatRecord,
    RepeatScore,
    ResponseRecord,
    RunRecord,
    Shard,
    Suite,
    SuiteVersionRecord,
    TraceBlock,
    VocabularyRecord,
)
from runs.run import create_run
from runs.store import bulk, packed_digest
from runs.store.traces import TRACES_PER_BLOCK
from runs.suites import push_suite
from runs.suites.suites import store_scorer
from runs.work import bind_bucket, claim_shard, finish_shard, open_engine_process, record_outcomes, register_worker
from tests import outcomes

SEED = 20261121
N_CASES, N_REPEATS, N_POSITIONS = 100_000, 5, 200
N_TOKENS = 49_152
FLIPPED = 0.02  # of the cases, in every repeat
SCORE_MOVES = 0.25  # of the flipped ones
NOISE = 0.02  # nats, where logprobs move
N_PROCESSES = 2

FIELDS = (
    "repeat_id",
    "case_index",
    "engine_process_id",
    "attempt",
    "text",
    "finish_reason",
    "ending",
    "error_code",
    "error_detail",
    "trace_block_id",
    "trace_slot",
    "trace_reason",
    "text_digest",
    "trace_digest",
    "prompt_digest",
    "n_tokens",
    "n_prompt_tokens",
    "request_id",
    "is_vouched",
    "marks",
)
_KEPT = ", ".join(FIELDS[1:])
MORE_REPEATS = (
    f"INSERT INTO runs_response (repeat_id, {_KEPT}) SELECT %s, {_KEPT} "  # noqa: S608  # names of our own columns
    "FROM runs_response WHERE repeat_id = %s ORDER BY case_index"
)


@dataclass(frozen=True, slots=True)
class Packed:
    """A block of the baseline, and what the other two runs have in its place, None for the same; bytes and digests."""

    baseline: tuple[bytes, list[bytes]]
    flipped: tuple[bytes, list[bytes]] | None
    moved: tuple[bytes, list[bytes]]


@dataclass(frozen=True, slots=True)
class Runs:
    """Run ids: flipped differs from baseline in FLIPPED of the cases, moved in every logprob of every one."""

    baseline: int
    flipped: int
    moved: int


def make_runs(n_cases: int = N_CASES) -> Runs:
    """Store the three runs; of 100,000 cases it is a minute or two of packing on two cores."""
    version = make_suite(n_cases)
    is_flipped = np.random.default_rng(SEED).random(n_cases) < FLIPPED
    made = [_Run(version, number) for number in range(3)]
    starts = range(0, n_cases, TRACES_PER_BLOCK)
    jobs = [(start, is_flipped[start : start + TRACES_PER_BLOCK]) for start in starts]
    with ProcessPoolExecutor(N_PROCESSES) as pool, transaction.atomic():
        for (start, _), packed in zip(jobs, pool.map(_pack, jobs, chunksize=16), strict=True):
            made[0].add(start, *packed.baseline)
            made[1].add(start, *(packed.flipped or packed.baseline))
            made[2].add(start, *packed.moved)
    for run, flips in zip(made, (None, is_flipped, None), strict=True):
        with transaction.atomic():
            run.finish(flips)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return Runs(*(run.run.pk for run in made))


def make_pair(slug: str, *, n_cases: int, n_positions: int, n_repeats: int = 1) -> tuple[int, int]:
    """Two runs whose every answer parts somewhere, recorded as a worker records them; equal repeats."""
    cases = [{"id": f"case-{number}", "prompt": "Write much.", "target": "blue"} for number in range(n_cases)]
    suite = {"slug": slug, "title": "Parted", "scorer": {"kind": "exact"}, "cases": cases}
    push_suite(document=suite)
    rng = np.random.default_rng(SEED)
    traces = [make_trace(rng, n_positions) for _ in cases]
    flipped = [_flip(trace, rng) for trace in traces]
    return _recorded(slug, traces, 1, n_repeats), _recorded(slug, flipped, 2, n_repeats)


def _recorded(slug: str, traces: list[TokenTrace], number: int, n_repeats: int) -> int:
    process = make_process(number)
    run = create_run(suite=slug, endpoint="sample-float32", profile="pinned", repeats=n_repeats)
    answers = [replace(outcomes.decoded(case), trace=trace) for case, trace in enumerate(traces)]
    while lease := claim_shard(worker=process.worker):
        assert bind_bucket(run_id=run.pk, bucket=process.bucket)
        shard = Shard.objects.get(pk=lease.id)
        record_outcomes(lease=lease, process=process, outcomes=answers[shard.first : shard.last + 1])
        finish_shard(lease=lease)
    return run.pk


def make_suite(n_cases: int = N_CASES) -> SuiteVersionRecord:
    suite = Suite.objects.create(slug=f"compared-{n_cases}")
    scorer = store_scorer({"default": {"kind": "exact"}, "cases": {}})
    version = SuiteVersionRecord.objects.create(
        suite=suite, number=1, digest="c" * 64, title="Compared", max_tokens=256, scorer=scorer, n_cases=n_cases
    )
    names = ("suite_version_id", "index", "case_id", "digest", "content", "tags", "group", "is_reference")
    content = json.dumps({"messages": [{"role": "user", "content": "Say blue. " * 20}], "target": "blue"})
    tags = [json.dumps([f"tag-{number}"]) for number in range(10)]
    rows = (
        (version.pk, index, f"case-{index:06}", f"{index:064x}", content, tags[index % 10], "", False)
        for index in range(n_cases)
    )
    bulk.copy_values(Case, names, rows)
    return version


class _Run:
    """One run under construction: its blocks go to the database as they come."""

    def __init__(self, version: SuiteVersionRecord, number: int) -> None:
        slug = f"{version.suite.slug}-{number}"
        endpoint = EndpointRecord.objects.create(slug=slug, model_path="/models/m", dtype="bfloat16", line="m")
        profile = ProfileRecord.objects.filter(slug="pinned").latest("version")
        ended = {"status": RunRecord.Status.FINISHED, "finished_at": timezone.now()}
        self.run = RunRecord.objects.create(suite_version=version, endpoint=endpoint, profile=profile, **ended)
        self._repeats = [
            RepeatRecord.objects.create(run=self.run, index=index + 1, **ended) for index in range(N_REPEATS)
        ]
        self._process = make_process(number)
        for repeat in self._repeats:
            repeat.engine_processes.add(self._process)
        RunRecord.objects.filter(pk=self.run.pk).update(bucket=self._process.bucket)
        self._places: list[tuple[int, int]] = []
        self._digests: list[bytes] = []

    def add(self, start: int, data: bytes, digests: list[bytes]) -> None:
        block = TraceBlock.objects.create(run=self.run, data=data, n_traces=len(digests), is_packed=True)
        self._places += [(block.pk, slot) for slot in range(len(digests))]
        self._digests += digests

    def finish(self, is_flipped: NDArray[np.bool_] | None) -> None:
        n_cases = self.run.suite_version.n_cases
        texts = [f"{'other ' if is_flipped is not None and is_flipped[case] else ''}answer" for case in range(n_cases)]
        bulk.copy_values(ResponseRecord, FIELDS, self._responses(texts))
        scores = (np.random.default_rng(SEED + 1).random(n_cases) < 0.8).astype(np.float64)
        if is_flipped is not None:
            moves = is_flipped & (np.random.default_rng(SEED + 2).random(n_cases) < SCORE_MOVES)
            scores[moves] = 1 - scores[moves]
        packed = {
            "text_digests": pack_digests([digest.text_digest(text) for text in texts]),
            "trace_digests": pack_digests(self._digests),
            "buckets": pack_buckets([0] * n_cases),
        }
        scored = {"scores": pack_scores(scores), "reasons": pack_reasons([None] * n_cases)}
        for repeat in self._repeats:
            if repeat is not self._repeats[0]:
                with connection.cursor() as cursor:
                    cursor.execute(MORE_REPEATS, [repeat.pk, self._repeats[0].pk])
            ids = [self._process.bucket_id]
            CaseColumns.objects.create(
                repeat=repeat, bucket_ids=ids, digest=packed_digest(**packed, bucket_ids=ids), **packed
            )
            RepeatScore.objects.create(
                repeat=repeat,
                scorer=self.run.suite_version.scorer,
                n_scored=n_cases,
                n_missing=0,
                points=run_points(scores),
                digest=packed_digest(**scored),
                **scored,
            )

    def _responses(self, texts: list[str]) -> Iterator[tuple[Any, ...]]:
        prompt = digest.short_digest(b"prompt")
        known = (self._repeats[0].pk, self._process.pk)
        for case, (text, (block, slot)) in enumerate(zip(texts, self._places, strict=True)):
            ours = (digest.text_digest(text), self._digests[case], prompt, N_POSITIONS, 60, str(case), True, 0)
            yield (known[0], case, known[1], 1, text, "stop", Ending.COMPLETE, "", "", block, slot, "", *ours)


def make_process(number: int, *, batch_class: str = "alone") -> EngineProcess:
    words, _ = VocabularyRecord.objects.get_or_create(
        digest="b" * 64,
        defaults={"n_tokens": N_TOKENS, "data": pack_vocabulary([b"t%d" % token for token in range(N_TOKENS)], [0])},
    )
    worker = register_worker(
        name=f"compared-{secrets.token_hex(4)}", host="bench", pid=0, pool="default", hardware={}, versions={}
    )
    manifest = outcomes.manifest(dtype="bfloat16") | {"versions": {"vllm": f"0.32.{number}"}}
    process = open_engine_process(
        worker=worker,
        manifest=manifest,
        wanted_pins={},
        batch_class=batch_class,
        line="bench",
        model_name="bench",
        start_seconds=0.0,
    )
    EngineProcess.objects.filter(pk=process.pk).update(vocabulary=words)
    return process


def _pack(job: tuple[int, NDArray[np.bool_]]) -> Packed:
    """One block of each run, from a generator of its own: the same whatever the number of processes."""
    start, is_flipped = job
    rng = np.random.default_rng((SEED, start))
    traces = [make_trace(rng) for _ in is_flipped]
    flipped = [_flip(trace, rng) if flips else trace for trace, flips in zip(traces, is_flipped, strict=True)]
    moved = [move(trace, rng, 0) for trace in traces]
    return Packed(pack(traces), pack(flipped) if is_flipped.any() else None, pack(moved))


def pack(traces: list[TokenTrace]) -> tuple[bytes, list[bytes]]:
    return encode_block(traces), [trace.digest for trace in traces]


def make_trace(rng: np.random.Generator, n_positions: int = N_POSITIONS) -> TokenTrace:
    ids = rng.integers(1, N_TOKENS, (n_positions, 2), dtype=np.int32)
    ids[:, 1] = np.where(ids[:, 1] == ids[:, 0], 1 + ids[:, 0] % (N_TOKENS - 1), ids[:, 1])
    first = -rng.exponential(0.3, n_positions)
    logprobs = np.column_stack([first, first - 0.1 - rng.exponential(3.0, n_positions)]).astype(np.float32)
    return TokenTrace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs)


def move(
    trace: TokenTrace, rng: np.random.Generator, onset: int, sd: float = NOISE, *, most: float = 0.04
) -> TokenTrace:
    """The same tokens, each logprob moved from a position on, at most by `most`: top-1 stays top-1, for margins are
    0.1 at least.
    """
    logprobs = trace.alternative_logprobs.copy()
    shifts = rng.normal(0.0, sd, logprobs[onset:].shape).astype(np.float32)
    logprobs[onset:] += np.clip(shifts, -most, most)
    return TokenTrace(trace.token_ids, logprobs[:, 0].copy(), trace.alternative_ids, logprobs)


def _flip(trace: TokenTrace, rng: np.random.Generator) -> TokenTrace:
    """Another answer from some position on: what came second is chosen, and then everything is another token."""
    onset, flip = np.sort(rng.integers(1, len(trace), 2)).tolist()
    moved, rest = move(trace, rng, onset), make_trace(rng, len(trace))
    ids, logprobs = moved.alternative_ids.copy(), moved.alternative_logprobs.copy()
    ids[flip], ids[flip + 1 :], logprobs[flip + 1 :] = (
        ids[flip, ::-1],
        *(column[flip + 1 :] for column in (rest.alternative_ids, rest.alternative_logprobs)),
    )
    return TokenTrace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs)
