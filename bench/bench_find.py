"""The search over everything at 10,000 runs and 1,000,000 responses, each way of looking by itself and all of them.

The rows are made by PostgreSQL itself: what matters to a search is how many there are, how long their texts, and what
their indexes hold.
"""

import time

from django.conf import settings
from django.db import connection

from bench.row import Row, median_row
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.find import parse_wanted, search
from runs.models import RepeatRecord, ResponseRecord
from runs.run import create_run
from runs.suites import push_suite

NAME = "bench-find"
N_RUNS, N_CASES, N_SUITES = 10_000, 100, 1_000
N_OTHERS = 100_000  # responses with a request id that others gave
ROUNDS = 9
# A repeat a run; of each response the digests of its case and repeat, a text of 200 characters, and no trace.
MAKE = (
    """
    INSERT INTO runs_suite (slug, created_at) SELECT 'suite-' || n, now() FROM generate_series(2, {suites}) n
    """,
    """
    INSERT INTO runs_suiteversion (suite_id, number, digest, title, max_tokens, stop, scorer_id, n_cases, created_at)
    SELECT suite.id, 1, encode(sha256(suite.slug::bytea), 'hex'), suite.slug, old.max_tokens, old.stop, old.scorer_id,
           {cases}, now()
      FROM runs_suite suite, runs_suiteversion old WHERE suite.slug LIKE 'suite-%'
    """,
    """
    INSERT INTO runs_case (suite_version_id, index, case_id, digest, content, tags, "group", is_reference)
    SELECT version.id, n, 'tool-' || lpad(n::text, 3, '0'), encode(sha256((version.id || '-' || n)::bytea), 'hex'),
           jsonb_build_object('target', 'blue', 'messages', jsonb_build_array(jsonb_build_object('role', 'user',
             'content',
             'Convert ' || version.id * 1000 + n || ' yen for invoice ' || md5(n::text || version.id)
             || repeat(' and say how you came to it', 12)))),
           '[]', '', false
      FROM runs_suiteversion version, generate_series(0, {cases} - 1) n WHERE version.title LIKE 'suite-%'
    """,
    """
    INSERT INTO runs_run (suite_version_id, endpoint_id, profile_id, labels, priority, is_reported, log_ids, log_digest,
                          status, is_cancel_wanted, failure, is_one_draw, price, created_at, ran_at)
    SELECT version.id, old.endpoint_id, old.profile_id, jsonb_build_object('branch', 'release/' || n), old.priority,
           false, '[]', '', 'finished', false, '', false, '{{}}', now(), now() - n * interval '1 minute'
      FROM runs_run old, generate_series(1, {runs}) n
      JOIN (SELECT id, row_number() OVER (ORDER BY id) AS place FROM runs_suiteversion) version
        ON version.place = 1 + n % {suites}
    """,
    """
    INSERT INTO runs_repeat (run_id, index, status) SELECT id, 1, 'finished' FROM runs_run WHERE status = 'finished'
    """,
    """
    INSERT INTO runs_response (repeat_id, case_index, attempt, text, finish_reason, ending, error_code, error_detail,
                               trace_reason, text_digest, trace_digest, n_tokens, request_id, marks, is_vouched,
                               recorded_at)
    SELECT repeat.id, n, 1, repeat(md5(repeat.id::text || n), 6), 'stop', 'complete', '', '', '',
           decode(md5('text' || repeat.id || n), 'hex'), decode(md5('trace' || repeat.id || n), 'hex'), 60,
           CASE WHEN row_number() OVER () <= {others} THEN 'req-' || md5(n::text || repeat.id)
                ELSE n || '-' || left(md5(repeat.id || '/' || n), 8) END, 0, true, now()
      FROM runs_repeat repeat, generate_series(0, {cases} - 1) n WHERE repeat.status = 'finished'
    """,
    """
    INSERT INTO runs_casecolumns (repeat_id, text_digests, trace_digests, buckets, bucket_ids, batch_sizes, digest,
                                  n_left_out)
    SELECT repeat_id, string_agg(text_digest, ''::bytea ORDER BY case_index),
           string_agg(trace_digest, ''::bytea ORDER BY case_index), ''::bytea, '[]', '{{}}', '', 0
      FROM runs_response GROUP BY repeat_id
    """,
    "VACUUM ANALYZE",
)


def measure() -> list[Row]:
    _make()
    newest = ResponseRecord.objects.order_by("-pk").values("request_id", "trace_digest")[0]
    theirs = ResponseRecord.objects.filter(request_id__startswith="req-").values_list("request_id", flat=True)[0]
    wanted = {
        "all kinds, a number": "041",
        "all kinds, two words": "yen invoice",
        "all kinds, nothing fits": "nothing-of-the-kind",
        "all kinds, four digits of a digest": "0a41",
        "all kinds, a label": "release/4711",
        "digest of a trace, whole": newest["trace_digest"].hex(),
        "request id of our own engine": newest["request_id"],
        "request id that others gave, six characters of it": theirs[:10],
    }
    rows = [_row(what, text) for what, text in wanted.items()]
    rows += [_row("texts of all responses, nothing fits", "answer nobody gave", kind="answer", aim="")]
    return [*rows, *_sizes()]


def _make() -> None:
    case = {"id": "one", "prompt": "Say blue.", "target": "blue"}
    push_suite(document={"slug": NAME, "title": NAME, "scorer": {"kind": "exact"}, "cases": [case]})
    model = str(settings.MODEL_ROOTS[0] / "made-up")
    create_endpoint(slug=NAME, model_path=model, dtype="float32", line=NAME, pool=NAME)
    create_profile(slug=NAME, title="Bench", settings=DEFAULT_PROFILES["pinned"]["settings"])
    create_run(suite=NAME, endpoint=NAME, profile=NAME, repeats=1)
    with connection.cursor() as cursor:
        for statement in MAKE:
            cursor.execute(statement.format(runs=N_RUNS, cases=N_CASES, suites=N_SUITES, others=N_OTHERS))
    assert ResponseRecord.objects.count() == N_RUNS * N_CASES
    assert RepeatRecord.objects.count() > N_RUNS


def _row(what: str, text: str, *, kind: str = "", aim: str = "at most 100") -> Row:
    search(parse_wanted(text, kind))
    readings = []
    for _ in range(ROUNDS if aim else 3):
        began = time.perf_counter()
        search(parse_wanted(text, kind))
        readings.append(1000 * (time.perf_counter() - began))
    return median_row(what, readings, "ms", aim=aim)


def _sizes() -> list[Row]:
    """What the indexes of the search take."""
    n_cases, n_responses = N_SUITES * N_CASES, N_RUNS * N_CASES
    names = {
        "case_by_id": n_cases,
        "case_by_digest": n_cases,
        "case_by_word": n_cases,
        "response_by_request": n_responses,
    }
    with connection.cursor() as cursor:
        rows = []
        for name, n in names.items():
            cursor.execute("SELECT pg_relation_size(%s::regclass)", [name])
            [size] = cursor.fetchone()
            noun = "response" if name.startswith("response") else "case"
            rows.append(Row(f"index {name}", size / n, f"bytes a {noun}"))
    return rows
