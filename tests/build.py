"""People and runs in the database, for tests of what is read from it.

A run is asked for by the service; what an engine would have brought is written as rows, so that a test
can have any repeat, bucket or missing response that it needs.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from evalboard.core import digest, scoring
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import TokenTrace, encode_block, make_trace, pack_vocabulary
from runs.access import create_token, grant_role
from runs.catalogue import create_endpoint, create_profile, note_rotation
from runs.compare import report_of
from runs.models import (
    BucketRecord,
    ComparisonRecord,
    EndpointRecord,
    EngineProcess,
    FingerprintRecord,
    Model,
    ProfileRecord,
    RepeatRecord,
    ResponseRecord,
    Rotation,
    RunRecord,
    Shard,
    Stray,
    SuiteVersionRecord,
    Token,
    TraceBlock,
    VocabularyRecord,
    WorkerRecord,
)
from runs.run import Pick, create_run, run_page
from runs.suites import finish_trial, push_suite, trial_work
from runs.work import Lease, rollup

TARGET = "blue"
_PINNED = DEFAULT_PROFILES["pinned"]["settings"]
SAMPLED = {
    "title": "Sampled: one case at a time, at T = 0.7",
    "settings": {**_PINNED, "sampling": {**_PINNED["sampling"], "temperature": 0.7}},
}
TOKENS = [b"<end>", b"blue", b" red", b"\n", b"\xe2\x9c", b"\x93"]


def user(name: str = "ada", role: str | None = "engineer") -> Any:
    person = get_user_model().objects.create_user(username=name)
    if role is not None:
        grant_role(user=person, role=role)
    return person


def token(person: Any, *scopes: str) -> str:
    """The secret of a new token; of scopes beyond the person's role, as if they had had more when it was made."""
    until = timezone.now() + timedelta(days=30)
    made, secret = create_token(user=person, name="test", scopes=("read",), expires_at=until)
    Token.objects.filter(pk=made.pk).update(scopes=sorted(scopes or ("read",)))
    return secret


def suite(slug: str = "colours", case_ids: Sequence[str] = ("sky", "sea", "a/b c")) -> SuiteVersionRecord:
    cases = [
        {"id": case_id, "prompt": f"Which colour has {case_id}?", "target": TARGET, "tags": [f"tag-{number}"]}
        for number, case_id in enumerate(case_ids)
    ]
    document = {"slug": slug, "title": slug.title(), "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases}
    return push_suite(document=document)[0]


def endpoint(slug: str = "local", **changes: Any) -> str:
    path = str(settings.MODEL_ROOTS[0] / "paint-1b")
    known = {"model_path": path, "dtype": "float32", "line": "paint"}
    return create_endpoint(slug=slug, **{**known, **changes}).slug


def profile(slug: str = "pinned") -> str:
    """A default profile, or `sampled`: as pinned, at T = 0.7."""
    known = {**DEFAULT_PROFILES, "sampled": SAMPLED}[slug]
    return create_profile(slug=slug, title=known["title"], settings=known["settings"])[0].slug


def worker(name: str = "first", **changes: Any) -> WorkerRecord:
    known = {"host": "here", "pid": 1, "pool": "default", "hardware": {"kind": "cpu"}, "seen_at": Now()}
    return WorkerRecord.objects.create(name=name, **{**known, **changes})


def bucket(dtype: str = "float32", *, batch_class: str = "alone", weights: str = "a" * 64) -> BucketRecord:
    served, _ = Model.objects.get_or_create(digest=weights, defaults={"name": "paint-1b", "line": "paint"})
    manifest = {"engine": {"dtype": dtype}, "versions": {"vllm": "0.32.0"}}
    fingerprint, _ = FingerprintRecord.objects.get_or_create(
        digest=digest.digest_json(manifest), defaults={"label": f"vLLM 0.32.0, CPU, {dtype}", "manifest": manifest}
    )
    return BucketRecord.objects.get_or_create(model=served, fingerprint=fingerprint, batch_class=batch_class)[0]


def process(of: BucketRecord | None = None, **changes: Any) -> EngineProcess:
    """An engine process whose pins held and whose self-checks gave the same bits."""
    words, _ = VocabularyRecord.objects.get_or_create(
        digest="b" * 64, defaults={"n_tokens": len(TOKENS), "data": pack_vocabulary(TOKENS, end_ids=[0])}
    )
    known = {
        "worker": WorkerRecord.objects.first() or worker(),
        "bucket": of or bucket(),
        "vocabulary": words,
        "manifest": {"engine": {"dtype": "float32"}, "host": {"name": "here"}},
        "pins": [{"name": "max_num_seqs", "wanted": 1, "found": 1, "held": True}],
        "self_checks": [{"at": "2026-11-20T12:00:00+00:00", "digest": "d" * 64, "same": True}],
        "start_seconds": 4.5,
    }
    return EngineProcess.objects.create(**{**known, **changes})


def run(
    version: SuiteVersionRecord | None = None,
    *,
    repeats: int = 2,
    on: str = "local",
    under: str = "pinned",
    **changes: Any,
) -> RunRecord:
    """A queued run; endpoint, profile and suite are made where they are not there."""
    version = version or SuiteVersionRecord.objects.first() or suite()
    if not EndpointRecord.objects.filter(slug=on).exists():
        endpoint(on)
    if not ProfileRecord.objects.filter(slug=under).exists():
        profile(under)
    return create_run(suite=version.suite.slug, endpoint=on, profile=under, repeats=repeats, **changes)


def strays(of: RunRecord, *, n: int) -> None:
    """End a run whose first n cases have a stray each, in repeat 2."""
    served = bucket(batch_class="mixed")
    counted = {"n_strays": n, "n_stray_cases": n, "n_cases": n, "n_unread": 0, "n_responses": 5 * n}
    known = {"bucket": served.pk, "is_steady": False, "distance": 0.33, "noise": 0.0, "far": 0.27, "n_identical": 4 * n}
    RunRecord.objects.filter(pk=of.pk).update(
        status=RunRecord.Status.FINISHED,
        finished_at=Now(),
        bucket=served,
        strays=[known | counted | {"n_agreeing": 4 * n}],
    )
    Stray.objects.bulk_create(Stray(run=of, bucket=served, case_index=case, repeat=2) for case in range(n))


def trace(text: str = TARGET, *, logprob: float = -0.25) -> TokenTrace:
    """Two positions: the text's token and the end; "blue" and "red" are in the vocabulary."""
    token_id = {"blue": 1, "red": 2}.get(text, 4)
    other = 1 if token_id != 1 else 2
    return make_trace(
        [token_id, 0], [logprob, -0.5], [[(token_id, logprob), (other, -2.0)], [(0, -0.5), (3, float("-inf"))]]
    )


Texts = Sequence[str | None] | Mapping[int, str | None]  # None is a missing response


def decode(
    of: RunRecord,
    repeat: int,
    texts: Texts,
    *,
    by: EngineProcess | Sequence[EngineProcess] | None = None,
    logprob: float = -0.25,
    ends: bool = True,
) -> RepeatRecord:
    """Store a repeat's responses, and end it unless told not to.

    texts: of all cases, or by index of those that a targeted repeat decodes. `by` is the process that decoded it, or
    one for each case.
    """
    row = RepeatRecord.objects.get(run=of, index=repeat)
    _store(of, [(row, texts)], by=by or process(), logprob=logprob, ends=ends)
    row.refresh_from_db()
    return row


def finished_run(*repeats: Sequence[str | None], by: EngineProcess | None = None, **changes: Any) -> RunRecord:
    """A run of which every repeat has ended with these texts, one for each case."""
    texts = repeats or ((TARGET, TARGET, "red"), (TARGET, "red", "red"))
    created = run(repeats=len(texts), **changes)
    rows = RepeatRecord.objects.filter(run=created).order_by("index")
    _store(created, list(zip(rows, texts, strict=True)), by=by or process())
    created.refresh_from_db()
    return created


def _store(
    of: RunRecord,
    repeats: Sequence[tuple[RepeatRecord, Texts]],
    *,
    by: EngineProcess | Sequence[EngineProcess],
    logprob: float = -0.25,
    ends: bool = True,
) -> None:
    """Store repeats with few statements, and end each as the worker does that ends its last shard."""
    rows = [row for row, _ in repeats]
    answers = [dict(texts if isinstance(texts, Mapping) else enumerate(texts)) for _, texts in repeats]
    processes = [by] * len(answers[0]) if isinstance(by, EngineProcess) else list(by)
    traces = [[trace(text or "", logprob=logprob) for text in each.values()] for each in answers]
    blocks = TraceBlock.objects.bulk_create(
        TraceBlock(run=of, data=encode_block(each), n_traces=len(each), is_packed=True) for each in traces
    )
    ResponseRecord.objects.bulk_create(
        ResponseRecord(**_response(row, index, text, processes[slot], (block, slot), decoded[slot]))
        for row, each, block, decoded in zip(rows, answers, blocks, traces, strict=True)
        for slot, (index, text) in enumerate(each.items())
    )
    served = RepeatRecord.engine_processes.through
    served.objects.bulk_create(
        served(repeat=row, engineprocess=each) for row in rows for each in dict.fromkeys(processes)
    )
    RunRecord.objects.filter(pk=of.pk).update(
        bucket=processes[0].bucket, status=RunRecord.Status.RUNNING, started_at=Now()
    )
    shards = Shard.objects.filter(repeat__in=rows)
    status = Shard.Status.FINISHED if ends else Shard.Status.RUNNING
    n_each = len(processes) if shards.count() == len(rows) else Coalesce("n_chosen", F("last") - F("first") + 1)
    shards.update(status=status, attempt=1, owner=processes[0].worker, n_done=n_each)
    RepeatRecord.objects.filter(pk__in=[row.pk for row in rows]).update(status=RepeatRecord.Status.RUNNING)
    for row in rows if ends else ():
        rollup.finish_repeat(repeat_id=row.pk)


def rotated(run: RunRecord, at: datetime) -> None:
    """Note the rotation that a run shows, if it does, as one of this time."""
    with transaction.atomic():
        note_rotation(shown_by=run)
    Rotation.objects.filter(run=run).update(at=at)


def _response(
    repeat: RepeatRecord,
    index: int,
    text: str | None,
    by: EngineProcess,
    place: tuple[TraceBlock, int],
    decoded: TokenTrace,
) -> dict[str, Any]:
    row: dict[str, Any] = {"repeat": repeat, "case_index": index, "engine_process": by, "attempt": 1}
    if text is None:
        return row | {"error_code": "prompt_too_long", "error_detail": "1,100 tokens do not fit."}
    return row | {
        "text": text,
        "finish_reason": "stop",
        "trace_block": place[0],
        "trace_slot": place[1],
        "text_digest": digest.text_digest(text),
        "trace_digest": decoded.digest,
        "prompt_digest": digest.short_digest(b"prompt"),
        "n_tokens": len(decoded),
        "n_prompt_tokens": 7,
        "batch_min": 1,
        "batch_max": 1,
        "seed_sent": 42,
        "decode_seconds": 0.5,
    }


def case_rows(run_id: int, *, query: str = "", only: str = "", offset: int = 0, limit: int = 100) -> Any:
    """The cases that the page of a run lists."""
    return run_page(run_id, [Pick(query, only, offset, limit)])[1].rows[0]


def comparison_report(comparison_id: int) -> Any:
    """What the page of a comparison is drawn of, read as it is stored by now."""
    return report_of(ComparisonRecord.objects.get(pk=comparison_id))


def answer_trial(lease: Lease, text: str) -> None:
    """End a claimed trial with an answer, scored as a worker scores it."""
    _, case = trial_work(lease.id)
    given = scoring.score(case["scorer"], text=text, target=case["target"], tools=case["tools"])
    scored = scoring.ScorerReply(given.value, given.reason)
    finish_trial(lease=lease, text=text, thinking=None, finish_reason="stop", seconds=0.5, scored=scored)
