"""Every address of the pages that takes a form is sent a good one as an admin, and leaves a line in the audit trail.

The addresses are those of the site: one that is added and not sent here fails, as does one that leaves no line.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.signing import Signer
from django.test import Client
from sesame.utils import get_parameters

from evalboard.core import scoring
from evalboard.core.profile import DEFAULT_PROFILES
from runs.audit import check_trail
from runs.comments import create_comment
from runs.models import (
    AuditLineRecord,
    BaselineRecord,
    EndpointRecord,
    JudgingRecord,
    ReleaseRecord,
    RolloutSeriesRecord,
    WebhookRecord,
)
from runs.suites import store_scorer
from runs.webhooks.follows import create_address, follow
from tests import build, judged
from tests.api import everything
from tests.api.test_access import PAGES, name
from tests.frontend import stage
from tests.importers import batch_log
from tests.worker.test_judges import JUDGE

pytestmark = pytest.mark.django_db
CASE = everything.CASE
# What these take is answered with a page, or with what is read elsewhere.
READS = {
    "api/docs/",  # shows the page for any method
}
FORM = {
    "profile": "pinned",
    "endpoint": "local",
    "suite": stage.SLUG,
}


@pytest.fixture
def rows(settings: Any) -> everything.Rows:
    settings.HAS_SECRET_KEY = True
    return everything.make(build.user("ada", "admin"))


def forms(rows: everything.Rows) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """Yield an address, the values of its parameters and a form, in an order in which all succeed."""
    ada = get_user_model().objects.get(username="ada")
    of = rows.known
    run, slug = {"run_id": rows.baseline}, {"slug": stage.SLUG}
    pair = {"baseline": rows.baseline, "candidate": rows.candidate}
    endpoint, release = {"endpoint": "rotating"}, {"release_id": of["release_id"]}
    yield "tour/end/", {}, {}
    yield (
        "suites/new/",
        {},
        {"text": everything.LINES, "slug": "pasted", "scorer": "exact", "max_tokens": 8, "act": "save"},
    )
    yield "suites/<text:slug>/baselines/", slug, {"run": rows.rotated, "reason": "Better."}
    yield (
        "suites/<text:slug>/baselines/<int:baseline_id>/again/",
        slug | {"baseline_id": BaselineRecord.objects.order_by("-id")[0].pk},
        {"what": "suite"},
    )
    yield "suites/<text:slug>/cases/<text_path:case>/", slug | {"case": CASE}, {}
    yield "runs/new/", {}, FORM | {"repeats": "1", "checkpoint": "", "labels": ""}
    yield "runs/<int:run_id>/again/", run, {}
    yield "runs/<int:run_id>/repeats/", {"run_id": rows.queued}, {"n": "1"}
    yield "runs/<int:run_id>/cancel/", {"run_id": rows.queued}, {}
    yield "runs/<int:run_id>/complete/", {"run_id": rows.queued}, {}
    yield "suites/<text:slug>/scorers/", slug, {"scorer": "contains"}
    yield "runs/<int:run_id>/rescore/", run, {"scorer": '{"kind": "regex", "pattern": "e"}'}
    yield "runs/<int:run_id>/labels/next/", run, {"said": "right", "case": CASE, "repeat": "1"}
    yield "runs/<int:run_id>/delete/", {"run_id": rows.unneeded}, {}
    log = SimpleUploadedFile("out.jsonl", batch_log.output({"tree": "green"}))
    yield "imports/", {}, {"format": "auto", "suite": "", "log": [log]}
    EndpointRecord.objects.filter(slug="rotating").update(engine="openai", base_url="https://models.example/v1")
    yield "endpoints/<text:endpoint>/price/", endpoint, {"price": "input=2.50,output=10"}
    scorer = store_scorer(scoring.plan(JUDGE | {"endpoint": "rotating"}, {}))
    judging = JudgingRecord.objects.create(run_id=rows.baseline, scorer=scorer, status="finished")
    yield "runs/<int:run_id>/judge-again/", run, {"judging": judging.pk}
    yield "endpoints/<text:endpoint>/fingerprint/", endpoint, {"ignores": "yes"}
    yield "endpoints/<text:endpoint>/try/", endpoint, {}
    yield "endpoints/<text:endpoint>/", endpoint, {}
    yield (
        "compare/<int:baseline>/<int:candidate>/replay/",
        pair,
        {"run": rows.baseline, "case": CASE, "batch_sizes": "1"},
    )
    gate = {"gate-0-baseline": rows.reference, "gate-0-candidate": rows.judged, "gate-0-tier": "critical"}
    yield "releases/new/", {}, gate | {"treatment": "model"}
    digest = ReleaseRecord.objects.get(pk=of["release_id"]).verdict.input_digest
    yield "releases/<int:release_id>/signoffs/", release, {"decision": "approve", "note": "", "input_digest": digest}
    yield "releases/<int:release_id>/rerun/", release, {"what": "suite", "sides": "alone", "endpoint": "local"}
    yield "releases/<int:release_id>/settle/", {"release_id": rows.open_release}, "shown"
    yield "probes/", {}, {"endpoint": "local", "kind": "batch", "profile": "pinned", "parameters": ""}
    body = '{"messages": [{"role": "user", "content": "Red?"}]}'
    yield "replays/", {}, {"endpoint": "local", "profile": "pinned", "body": body}
    yield "runs/<int:run_id>/forced/", run, {"endpoint": "local"}
    yield "compare/<int:baseline>/<int:candidate>/forced/", pair, {}
    yield "lab/", {}, FORM | {"runs": "5"}
    experiment = {"experiment_id": rows.experiment}
    yield "lab/bisect/", {}, of["apart"] | {"cases": "5"}
    yield "lab/<int:experiment_id>/start/", experiment, {}
    yield "lab/<int:experiment_id>/cancel/", experiment, {}
    yield "lab/<int:experiment_id>/resume/", experiment, {"budget_minutes": "30"}
    yield "lab/<int:experiment_id>/cancel/", experiment, {}
    yield "lab/<int:experiment_id>/delete/", experiment, {}
    probe = {"slug": "weekly", "endpoint": "local", "probe_kind": "canary", "cron": "0 4 * * 1", "time_zone": "UTC"}
    yield "schedules/", {}, {f"probe-{field}": value for field, value in probe.items()} | probe
    schedule = {"schedule_id": rows.schedule}
    yield "schedules/<int:schedule_id>/pause/", schedule, {}
    yield "schedules/<int:schedule_id>/resume/", schedule, {}
    yield "schedules/<int:schedule_id>/delete/", schedule, {}
    local = {"model_path": str(settings.MODEL_ROOTS[0] / "other"), "dtype": "bfloat16", "line": "paint"}
    yield (
        "settings/endpoints/new/",
        {},
        local
        | {
            "slug": "another",
            "max_model_len": 512,
            "pool": "default",
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
        },
    )
    yield "settings/policies/new/", {}, {"slug": "ours", "title": "Ours", "settings": json.dumps(judged.LENIENT)}
    profile = json.dumps(DEFAULT_PROFILES["pinned"]["settings"])
    yield "settings/profiles/new/", {}, {"slug": "mine", "title": "Mine", "settings": profile}
    yield "settings/model-names/new/", {}, {"name": "lab/b", "other_name": "lab/c", "reason": "One file."}
    yield "settings/model-names/<int:same_model_id>/take-back/", {"same_model_id": of["same_model_id"]}, {}
    yield "settings/people/", {}, {"name": "grace", "role": "viewer"}
    yield "settings/people/<text:name>/role/", {"name": "grace"}, {"role": "engineer"}
    yield "settings/people/<text:name>/link/", {"name": "grace"}, {}
    yield "settings/people/<text:name>/remove/", {"name": "grace"}, {}
    yield "settings/sessions/<text:session>/end/", {"session": rows.session}, {}
    yield "settings/retention/", {}, {"rule-what": "texts", "rule-days": "30"}
    yield "settings/retention/<int:rule_id>/delete/", {"rule_id": of["rule_id"]}, {}
    RolloutSeriesRecord.objects.create(name="grpo")
    yield "rollouts/<text:series>/delete/", {"series": "grpo"}, {}
    yield "comments/", {}, {"kind": "run", "name": rows.baseline, "text": "Look at *this*."}
    comment = create_comment(kind="run", name=str(rows.baseline), text="No.", user=ada)
    yield "comments/<int:comment_id>/withdraw/", {"comment_id": comment.pk}, {}
    yield "settings/tokens/", {}, {"name": "ci", "scopes": ["read"], "days": "30"}
    yield "settings/tokens/<int:token_id>/revoke/", {"token_id": rows.token}, {}
    hook, events = {"webhook_id": rows.webhook}, ["run.failed"]
    yield "settings/webhooks/", {}, {"url": "https://example.com/too", "events": events}
    yield "settings/webhooks/<int:webhook_id>/on/", hook, {}
    yield "settings/webhooks/<int:webhook_id>/test/", hook, {}
    yield "settings/webhooks/<int:webhook_id>/delete/", hook, {}
    yield "settings/notifications/", {}, {"address": "https://chat.example.com/hook"}
    own, _ = create_address(url="https://chat.example.com/other", person=ada)
    address = {"webhook_id": own.pk}
    yield "settings/notifications/<int:webhook_id>/test/", address, {}
    WebhookRecord.objects.filter(pk=own.pk).update(is_active=False)
    yield "settings/notifications/<int:webhook_id>/on/", address, {}
    yield "settings/notifications/<int:webhook_id>/delete/", address, {}
    yield "follows/", {}, {"kind": "suite", "name": stage.SLUG}
    followed = follow(kind="run", name=str(rows.baseline), person=ada)
    yield "follows/<int:follow_id>/stop/", {"follow_id": followed.pk}, {}
    unsubscribed = follow(kind="run", name=str(rows.candidate), person=ada)
    yield "unsubscribe/<text:stop_link>/", {"stop_link": stop_link(unsubscribed)}, {}
    case = {"case-suite": "pasted", "case-case": "a", "case-reason": "Asked for.", "case-voids_sign_offs": "on"}
    yield "settings/retention/case/", {}, case
    yield "logout/", {}, {}
    yield "logout/everywhere/", {}, {}
    ada.set_password("a long enough pass phrase")
    ada.save()
    yield "login/", {}, {"username": "ada", "password": "a long enough pass phrase"}
    ada.refresh_from_db()
    yield "signin/", {}, get_parameters(ada)


def stop_link(followed: Any) -> str:
    """The last part of the link of an e-mail."""
    return Signer(salt="unsubscribe").sign(str(followed.pk))


def fields_of(page: Any) -> dict[str, str]:
    """The hidden fields of a page's forms, and the first choice of each."""
    inputs = re.findall(r'<input type="(?:hidden|radio)" name="(\w+)" value="([^"]*)"', page.content.decode())
    return dict(reversed(inputs))


def test_every_form_of_the_site_leaves_a_line(rows: everything.Rows) -> None:
    client, ada = Client(raise_request_exception=False), get_user_model().objects.get(username="ada")
    client.force_login(ada)
    sent, problems = set(), []
    for route, parameters, form in forms(rows):
        if not client.session.get("_auth_user_id") and route not in ("login/", "signin/"):
            client.force_login(ada)
        path = "/" + re.sub(r"<\w+:(\w+)>", lambda hit, of=parameters: str(of[hit[1]]), route)
        fields = fields_of(client.get(path)) if form == "shown" else form
        n_lines = AuditLineRecord.objects.count()
        answer = client.post(path, fields)
        lines = AuditLineRecord.objects.order_by("id")[n_lines:]
        who = {line.person for line in lines if line.via.startswith("POST ")}
        if answer.status_code >= 400 or who != {"ada"}:
            words = re.findall(r"<p>(.*?)</p>", answer.content.decode())[:5]
            words += re.findall(r"<bdi>(.*?)</bdi>", client.get("/settings/").content.decode())[:3]
            problems.append((route, answer.status_code, who, words))
        sent.add(route)
    assert problems == [], "\n".join(map(str, problems))
    ada.refresh_from_db()  # a form changed the password, and so ended the sessions
    takes_forms = set()
    for route in PAGES:
        client.force_login(ada)  # each time: one of the pages ends the session
        if client.post(route.path).status_code != 405:
            takes_forms.add(name(route))
    assert takes_forms - sent == READS
    assert check_trail().is_whole
