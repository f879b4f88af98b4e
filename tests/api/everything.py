"""A server's database with something of everything, and for every call that the schema describes one that succeeds."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from django.utils import timezone

from evalboard.core.compare import digest_model_name
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.rollout_steps import measure_step
from evalboard.importers.files import LogFile
from runs.access import create_token, session_id
from runs.access.roles import ROLES
from runs.baselines import set_baseline
from runs.catalogue import store_default_policies
from runs.catalogue.rotations import note_rotation
from runs.comments import create_comment
from runs.fingerprints import say_same_model
from runs.forced import create_forced
from runs.imports import import_logs
from runs.lab import plan_experiment
from runs.models import (
    EndpointRecord,
    FingerprintRecord,
    ImportReadingRecord,
    Model,
    ProbeRecord,
    ReplayRecord,
    RunRecord,
    WebhookRecord,
)
from runs.release import create_release
from runs.replays import claim_replay, create_replay, finish_replay, record_result
from runs.retention import create_rule
from runs.schedules import create_schedule
from runs.webhooks import create_webhook
from runs.webhooks.webhooks import EVENTS
from runs.work import record_self_test, register_worker
from tests import build, forced, judged, probes, self_tests
from tests.api.conftest import SCOPES
from tests.core.test_rollout_steps import tensors
from tests.frontend import stage, two_runs
from tests.importers import batch_log
from tests.runs.test_replays import result

JSONL = "application/x-ndjson"
LINES = '{"suite": {"scorer": {"kind": "exact"}}}\n{"id": "a", "prompt": "Which colour?", "target": "blue"}\n'
SHEET = "prompt,target\nSay it.,blue\n"
FORM = "multipart/form-data"
LOG = batch_log.output({"sea": "green"})
LARGE_LOG = batch_log.output({f"sea {number}": "green" for number in range(20)})
CASE = "case-002"
PURGED = "purged"  # a suite of which no run is at work
CHAT = {"messages": [{"role": "user", "content": "Which colour?"}], "max_tokens": 8}
REMOTE = {
    "slug": "theirs",
    "engine": "openai",
    "base_url": "https://api.example.com/v1",
    "model": {"name": "gpt-paint"},
    "auth": "PAINT_API_KEY",
    "headers": {"x-team": "evals", "x-org": {"env": "ORG_API_KEY"}},
}


@dataclass(frozen=True)
class Good:
    """A request that succeeds. `path` and `query` are by the parameters' names; it takes the role's token."""

    operation: str
    path: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    media: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def secrets() -> dict[str, str]:
    """A token with every scope for each role."""
    return {role: build.token(build.user(role.replace(" ", "-"), role), *SCOPES) for role in ROLES}


@dataclass(frozen=True)
class Rows:
    """Ids of what was made, as the requests name them."""

    known: dict[str, Any]
    baseline: int
    candidate: int
    queued: int
    unneeded: int
    reference: int
    judged: int
    rotated: int
    open_release: int
    webhook: int
    schedule: int
    experiment: int
    token: int
    session: str


def make(person: Any) -> Rows:
    """Everything there is, by the services, as workers and people would bring it."""
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    store_default_policies()
    ours, theirs = two_runs.near_tie(2)
    baseline, candidate = two_runs.make({2: ours}, {2: theirs}, repeats=2)
    stage.run_in("incomplete")
    _self_tested()
    replay = _replayed(baseline)
    queued, unneeded = stage.start(), stage.run_in("finished")
    judged.policy()
    reference, other = judged.run(), judged.run()
    release = create_release(gates=_gates(reference, other), policy="lenient", labels={}, user=person)
    unsettled = create_release(
        gates=_gates(reference, judged.open_run()), policy="lenient", labels={"branch": "main"}, user=person
    )
    set_baseline(suite=stage.SLUG, run=reference.pk, reason="As shipped.", user=person)
    rotated = _rotated(person)
    EndpointRecord.objects.filter(slug="rotating").update(rests_until=timezone.now() + timedelta(hours=1))
    webhook, _ = create_webhook(url="https://example.com/told", events=list(EVENTS), user=person)
    WebhookRecord.objects.filter(pk=webhook.pk).update(is_active=False)
    schedule = create_schedule(slug="nightly", cron="0 3 * * *", kind="run", order=_scheduled(), user=person)
    experiment = plan_experiment(suite=stage.SLUG, endpoint="local", runs=5, user=person)
    for name in ("lab/a", "lab/b", "lab/c"):
        Model.objects.create(name=name, line=name, digest=digest_model_name(name))
    said = say_same_model(name="lab/a", other_name="lab/b", reason="One file.", user=person)
    until = timezone.now() + timedelta(days=1)
    comment = create_comment(kind="run", name=str(baseline.pk), text="The first one.", user=person)
    token, _ = create_token(user=person, name="other", scopes=("read",), expires_at=until)
    first, second = FingerprintRecord.objects.order_by("id").values_list("id", flat=True)[:2]
    scored, control, numerics = (
        forced.scored(create_forced(run_id=run.pk, endpoint="local")).pk for run in (baseline, candidate, reference)
    )
    known = {
        "apart": _apart(),
        "run_id": baseline.pk,
        "replay_id": replay.pk,
        "forced_id": scored,
        "known_forced": {"control": control, "numerics": numerics},
        "probe_id": _probed("seed", prompts=1, calls_per_group=2).pk,
        "batch": _probed("batch", prompts=1, copies=4).pk,
        "other_batch": _probed("batch", prompts=1, copies=4).pk,
        "import_id": _imported(person),
        "purged": build.suite(PURGED).pk,
        "rule_id": create_rule(what="traces", days=900, user=person).pk,
        "reading_id": _failed_reading(),
        "release_id": release.pk,
        "fingerprint_id": first,
        "other": second,
        "repeat": 1,
        "case": CASE,
        "endpoint": "local",
        "slug": stage.SLUG,
        "webhook_id": webhook.pk,
        "schedule_id": schedule.pk,
        "experiment_id": experiment.pk,
        "same_model_id": said.pk,
        "token_id": token.pk,
        "name": "viewer",
        "comment_id": comment.pk,
    }
    return Rows(
        known=known,
        baseline=baseline.pk,
        candidate=candidate.pk,
        queued=queued.pk,
        unneeded=unneeded.pk,
        reference=reference.pk,
        judged=other.pk,
        rotated=rotated.pk,
        open_release=unsettled.pk,
        webhook=webhook.pk,
        schedule=schedule.pk,
        experiment=experiment.pk,
        token=token.pk,
        session=_session(person),
    )


def good_requests(rows: Rows, answers: dict[str, Any]) -> list[Callable[[], Good]]:
    """One for each success that is described, in an order in which all succeed; later ones read earlier `answers`."""
    asked = {"suite": stage.SLUG, "suite_version": 1, "endpoint": "local", "profile": "pinned", "repeats": 1}
    pair = {"baseline": rows.baseline, "candidate": rows.candidate}
    run, queued = {"run_id": rows.baseline}, {"run_id": rows.queued}
    case = {"id": "one", "prompt": "Which colour?", "target": "blue"}
    suite = {"slug": "pushed", "title": "Pushed", "scorer": {"kind": "exact"}, "cases": [case]}
    endpoint = {"slug": "second", "model": {"path": str(settings.MODEL_ROOTS[0] / "paint-2b")}}
    profile = {"slug": "mine", "settings": DEFAULT_PROFILES["pinned"]["settings"]}
    release = {"suite": stage.SLUG, "candidate": str(rows.judged), "baseline": str(rows.reference), "policy": "lenient"}
    policy = {"slug": "ours", "settings": judged.LENIENT}
    step = {"step": 1, "figures": measure_step(tensors("trl")).to_json(), "max_kl": 0.001}
    until = (timezone.now() + timedelta(days=20)).isoformat()
    of = rows.known

    def take(*names: str) -> dict[str, Any]:
        return {name: of[name] for name in names}

    def settled() -> Good:
        plan = answers["settle_plan"]["plan"]
        body = {"look": plan["look"], "n_responses": plan["n_responses"]}
        return Good("settle", {"release_id": rows.open_release}, body=body)

    def signed() -> Good:
        digest = answers["release"]["input_digest"]
        return Good("sign_release", take("release_id"), body={"decision": "approve", "input_digest": digest})

    def of_upload(operation: str, **sent: Any) -> Callable[[], Good]:
        path = sent.pop("path", {})
        return lambda: Good(operation, {"upload_id": answers["open_upload"]["id"], **path}, **sent)

    part: dict[str, Any] = {
        "path": {"offset": 0},
        "query": {"sha256": sha256(LINES.encode()).hexdigest()},
        "body": LINES,
    }
    uploaded = [
        lambda: Good("judgings", run),
        lambda: Good("rescored", run | {"scorer_id": answers["rescore"]["scorer"]["id"]}),
        lambda: Good("rescored_cases", run | {"scorer_id": answers["rescore"]["scorer"]["id"]}),
        lambda: Good("unfollow", {"follow_id": answers["follow"]["id"]}),
        lambda: Good("delete_address", {"webhook_id": answers["create_address"]["id"]}),
        lambda: Good("trial", {"trial_id": answers["create_trial"]["id"]}),
        of_upload("send_part", **part, media=JSONL),
        of_upload("send_part", **part, media=JSONL),
        of_upload("close_upload", body={"n_bytes": len(LINES.encode()), "sha256": part["query"]["sha256"]}),
        of_upload("upload"),
        of_upload("delete_upload"),
    ]

    def unchanged(operation: str, path: dict[str, Any]) -> Callable[[], Good]:
        return lambda: Good(operation, path, headers={"If-None-Match": answers[f"{operation} ETag"]})

    plain = [
        Good("schema"),
        Good("health"),
        Good("ready"),
        Good("metrics"),
        Good("suites", query={"page_size": 1}),
        Good("push_suite", body=suite),
        Good("push_suite", body=suite),
        Good("push_suite", query={"slug": "lines"}, body=LINES, media=JSONL),
        Good("push_suite", query={"slug": "sheet", "scorer": "exact"}, body=SHEET, media="text/csv"),
        Good("run_estimate", query={"suite": stage.SLUG, "endpoint": "local"}),
        Good("follow", body={"kind": "suite", "name": stage.SLUG}),
        Good("follows"),
        Good("create_address", body={"url": "https://chat.example.com/hook"}),
        Good("addresses"),
        Good("create_trial", body={"suite": suite, "endpoint": "local"}),
        Good("uploads"),
        Good("uploads", query={"own": "true"}),
        Good("open_upload", body={"slug": "large"}),
        Good("suite", take("slug"), query={"version": 1}),
        Good("suite_versions", take("slug")),
        Good("suite_history", take("slug")),
        Good("suite_case", take("slug", "case")),
        Good("decode_case", take("slug", "case"), body={}),
        Good("baselines", take("slug")),
        Good("set_baseline", take("slug"), body={"run": str(rows.rotated), "reason": "Better."}),
        Good("endpoints"),
        Good("find", query={"q": "colours"}),
        Good("log_rollout", {"series": "grpo"}, body=step),
        Good("log_rollout", {"series": "grpo"}, body=step),
        Good("rollouts"),
        Good("rollout_series", {"series": "grpo"}),
        Good("rollout_steps", {"series": "grpo"}),
        Good("delete_rollout_series", {"series": "grpo"}),
        Good("create_endpoint", body=endpoint | {"dtype": "float32", "line": "paint"}),
        Good("create_endpoint", body=REMOTE),
        Good("endpoint", take("endpoint")),
        Good("set_endings", take("endpoint"), body={"endings": {"wrapped_up": "complete"}}),
        Good("try_endpoint", {"endpoint": "rotating"}),
        Good("set_fingerprint", {"endpoint": "theirs"}, body={"ignores_fingerprint": True}),
        Good("set_price", {"endpoint": "theirs"}, body={"price": {"currency": "USD", "input": "2.5", "output": "10"}}),
        Good("profiles"),
        Good("create_profile", body=profile),
        Good("create_profile", body=profile),
        Good("model_names"),
        Good("say_same_model", body={"name": "lab/b", "other_name": "lab/c", "reason": "One file."}),
        Good("model_name", take("same_model_id")),
        Good("take_back_same_model", take("same_model_id")),
        Good("policies"),
        Good("create_policy", body=policy),
        Good("create_policy", body=policy),
        Good("runs", query={"status": "finished"}),
        Good("create_run", body=asked | {"labels": {"branch": "main"}}, headers={"Idempotency-Key": "schema-1"}),
        Good("create_pair", body={"baseline": asked, "candidate": asked}),
        Good("run", run),
        Good("run", queued),
        Good("add_repeats", queued, body={"n": 1}),
        Good("rescore", run, body={"scorer": {"kind": "contains"}}),
        Good("scorers"),
        Good("adopt_scorer", {"slug": "pushed"}, body={"scorer": {"kind": "contains"}}),
        Good("adopt_scorer", {"slug": "pushed"}, body={"scorer": {"kind": "contains"}}),
        Good("cancel_run", queued),
        Good("complete_run", queued),
        Good("run_again", run, body={"endpoint": "local"}, headers={"Idempotency-Key": "schema-2"}),
        Good("delete_run", {"run_id": rows.unneeded}),
        Good("cases", run, query={"only": "failed"}),
        Good("responses", run, query={"repeat": 1}),
        Good("strays", run),
        Good("trace", take("run_id", "repeat", "case")),
        Good("trace", take("run_id", "repeat", "case"), headers={"Accept": "application/octet-stream"}),
        Good("export_run", run),
        Good("export_cases_csv", run, query={"only": "passed"}),
        Good("export_cases_jsonl", run),
        Good("export_pairs_csv", query=pair),
        Good("export_pairs_jsonl", query=pair),
        Good("export_release", take("release_id")),
        Good("answers_to_label", run),
        Good("label_answers", run, body={"labels": [{"case": CASE, "repeat": 1, "is_right": True}]}),
        Good("labels", run),
        Good("agreement", run),
        Good("delete_label", take("run_id", "repeat", "case")),
        Good("replays", run),
        Good("create_replay", run, body={"case": CASE, "batch_sizes": [1, 2]}),
        Good("create_replay", run, body={"case": CASE, "profile": "pinned"}),
        Good("create_body_replay", body={"endpoint": "local", "profile": "pinned", "body": CHAT}),
        Good("production_replays", query={"page_size": 1}),
        Good("replay", take("replay_id")),
        Good("run_forced", run),
        Good("create_forced", run, body={"endpoint": "local", "cases": [CASE], "repeats": [1]}),
        Good("forced_cost", run),
        Good("forced_cost_of", run, body={"repeats": [1]}),
        Good("forced", take("forced_id")),
        Good("forced_answers", take("forced_id"), query={"page_size": 2}),
        Good("forced_trace", take("forced_id", "repeat", "case")),
        Good("forced_trace", take("forced_id", "repeat", "case"), headers={"Accept": "application/octet-stream"}),
        Good("forced_verification", take("forced_id"), query=of["known_forced"]),
        Good("create_forced_pair", body={name: str(run) for name, run in pair.items()}),
        Good("probes", query={"endpoint": "local", "kind": "seed"}),
        Good("create_probe", body={"endpoint": "local", "kind": "canary", "parameters": {"prompts": 3}}),
        Good("probe_estimate", body={"endpoint": "local", "kind": "canary", "parameters": {"prompts": 3}}),
        Good("probe", take("probe_id")),
        Good("vendors", query={"endpoints": "local"}),
        Good("experiment", take("experiment_id")),
        Good("probe_calls", take("probe_id"), query={"page_size": 2}),
        Good("probes_held", {"probe_id": of["batch"], "other": of["other_batch"]}),
        Good("retention_rules"),
        Good("create_retention_rule", body={"what": "texts", "days": 30, "suite": of["slug"], "label": "branch=old"}),
        Good("retention_rule", take("rule_id")),
        Good("delete_retention_rule", take("rule_id")),
        Good("due_deletions"),
        Good("suite_storage"),
        Good("deletions"),
        Good("imported_logs"),
        Good("import_log", body={"files": [LOG]}, media=FORM),
        Good("import_log", body={"files": [LOG]}, media=FORM),
        Good("import_log", body={"files": [LARGE_LOG]}, media=FORM),
        Good("import_reading", take("reading_id")),
        Good("imported_log", take("import_id")),
        Good("compare", query=pair),
        Good("compare", query=pair | {"repeat": "1,1"}),
        Good("compared_cases", query=pair),
        Good("compared_case", {"case": CASE}, query=pair),
        Good("compared_outcomes", query=pair | {"outcome": "unstable", "look": 2}),
        Good("releases"),
        Good("create_release", body=release),
        Good("release", take("release_id")),
        Good("rerun", take("release_id"), body={"candidate": {"endpoint": "local"}, "baseline": {}}),
        Good("settle_plan", {"release_id": rows.open_release}),
    ]
    last = [
        Good("signoffs"),
        Good("fingerprints"),
        Good("fingerprint", take("fingerprint_id")),
        Good("fingerprint_difference", take("fingerprint_id", "other")),
        Good("workers"),
        Good("tokens"),
        Good("audit_lines", query={"kind": "run", "page_size": 1}),
        Good("export_audit"),
        Good("audit_check"),
        Good("comments", query={"kind": "run", "name": str(rows.baseline)}),
        Good("create_comment", body={"kind": "case", "name": f"{stage.SLUG}/{CASE}", "text": "It *flips*."}),
        Good("withdraw_comment", take("comment_id")),
        Good("people"),
        Good("create_person", body={"name": "grace", "role": "viewer"}),
        Good("person", {"name": "grace"}),
        Good("change_role", {"name": "grace"}, body={"role": "engineer"}),
        Good("create_sign_in_link", {"name": "grace"}),
        Good("delete_person", {"name": "grace"}),
        Good("sessions"),
        Good("end_session", {"session": rows.session}),
        Good("create_token", body={"name": "mine", "scopes": ["read"], "expires_at": until}),
        Good("revoke_token", {"token_id": rows.token}),
        Good("webhooks"),
        Good("create_webhook", body={"url": "https://example.com/too", "events": list(EVENTS)}),
        Good("webhook", {"webhook_id": rows.webhook}),
        Good("switch_webhook_on", {"webhook_id": rows.webhook}),
        Good("send_webhook_test", {"webhook_id": rows.webhook}),
        Good("delete_webhook", {"webhook_id": rows.webhook}),
        Good("schedules"),
        Good("create_schedule", body={"slug": "weekly", "cron": "0 4 * * 1", "run": _scheduled()}),
        Good("schedule", {"schedule_id": rows.schedule}),
        Good("pause_schedule", {"schedule_id": rows.schedule}),
        Good("resume_schedule", {"schedule_id": rows.schedule}),
        Good("delete_schedule", {"schedule_id": rows.schedule}),
        Good("experiments"),
        Good("create_experiment", body={"suite": stage.SLUG, "endpoint": "local", "runs": 5, "sources": ["order"]}),
        Good("create_experiment", body={"kind": "bisect", **of["apart"]}),
        Good("start_experiment", {"experiment_id": rows.experiment}),
        Good("cancel_experiment", {"experiment_id": rows.experiment}),
        Good("resume_experiment", {"experiment_id": rows.experiment}, body={"budget_minutes": 30}),
        Good("export_experiment_csv", {"experiment_id": rows.experiment}),
        Good("export_experiment_markdown", {"experiment_id": rows.experiment}),
        Good("cancel_experiment", {"experiment_id": rows.experiment}),
        Good("delete_experiment", {"experiment_id": rows.experiment}),
        Good("purge_case", body={"suite": PURGED, "case": "sky", "reason": "Asked for.", "voids_sign_offs": True}),
    ]

    def as_is(each: Good) -> Callable[[], Good]:
        return lambda: each

    read_again = [unchanged(name, take(f"{name}_id")) for name in ("replay", "forced", "probe", "experiment")]
    read_again += [as_is(Good("run", queued)), unchanged("run", queued)]
    return [*map(as_is, plain), *uploaded, signed, settled, *read_again, *map(as_is, last)]


def _scheduled() -> dict[str, Any]:
    """A run that can be started, as a schedule names it."""
    return {"suite": stage.SLUG, "endpoint": "local", "profile": "pinned", "repeats": 1}


def _probed(kind: str, **parameters: Any) -> ProbeRecord:
    """A small probe that found something."""
    probes.ask(kind, parameters=parameters)
    return probes.served(probes.honoured)


def _session(person: Any) -> str:
    """The id of a session of a person."""
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session.create()
    return session_id(session.session_key)


def _imported(person: Any) -> int:
    """The id of a log that was read."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(batch_log.output({"sky": "blue"}))
        file.flush()
        log = LogFile("output.jsonl", Path(file.name))
        return import_logs(files=[log], format="auto", suite=None, user=person)[0].pk


def _failed_reading() -> int:
    """The id of the reading of a large log that was refused."""
    problem = {
        "type": "about:blank",
        "title": "No log",
        "status": 400,
        "detail": "It is none.",
        "code": "invalid_input",
    }
    problem |= {"request_id": "-", "fields": {"files": "It is none."}}
    about = {"status": "failed", "options": {}, "names": ["output.jsonl"], "n_bytes": 9, "problem": problem}
    return ImportReadingRecord.objects.create(**about).pk


def _gates(baseline: RunRecord, candidate: RunRecord) -> list[dict[str, Any]]:
    slug = candidate.suite_version.suite.slug
    return [{"suite": slug, "baseline": baseline.pk, "candidate": candidate.pk, "tier": "critical"}]


def _rotated(person: Any) -> RunRecord:
    """The run whose stack made a baseline on its endpoint expire."""
    build.endpoint("rotating", line="other")
    texts = judged.answers(judged.N_CASES)
    before = build.finished_run(texts, version=judged.suite(), on="rotating")
    set_baseline(suite=stage.SLUG, run=before.pk, reason="As it was.", user=person)
    after = build.finished_run(texts, version=judged.suite(), on="rotating", by=build.process(build.bucket("bfloat16")))
    with transaction.atomic():
        note_rotation(shown_by=after)
    return after


def _apart() -> dict[str, int]:
    """Two runs in two dtypes that answer a case otherwise, as a bisect names them."""
    build.endpoint("half", dtype="bfloat16")
    half = build.process(build.bucket("bfloat16"))
    answers = judged.answers(judged.N_CASES - 1)
    theirs = build.finished_run(answers, version=judged.suite(), on="half", by=half)
    return {"baseline": judged.run().pk, "candidate": theirs.pk}


def _self_tested() -> None:
    """A worker whose node was tested."""
    hardware, versions = {"kind": "cpu"}, {"vllm": "0.32.0"}
    record_self_test(host="node-2", hardware=hardware, versions=versions, result=self_tests.result())
    register_worker(name="tested", host="node-2", pid=2, pool="default", hardware=hardware, versions=versions)


def _replayed(run: RunRecord) -> ReplayRecord:
    """A replay of one case at two batch sizes, ended."""
    replay = create_replay(run_id=run.pk, case_id=CASE, batch_sizes=[1, 2])
    by = register_worker(name="replayer", host="node-3", pid=3, pool="default", hardware={}, versions={})
    lease = claim_replay(worker=by)
    assert lease is not None
    for variant in replay.variants:
        record_result(lease=lease, result=result(variant))
    finish_replay(lease=lease)
    return replay
