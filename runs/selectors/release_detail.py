"""One release as its page and `GET /releases/{id}/` show it, in a fixed number of queries."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.db.models.fields.json import KT
from django.db.models.functions import Now

from evalboard.core.errors import NotFound
from evalboard.core.gate_document import FIRST_RULES, RULES
from evalboard.core.verdict_names import verdict_name
from runs.models import Gate, Release, Run, Settling, SignOff, Verdict
from runs.selectors.release import GateReport, Line, ReleaseReport, SettlePlan, SignOffLine, StoryLine
from runs.selectors.release_gates import gate_reports, lines
from runs.selectors.release_list import rows_of, with_outcome

OPEN = (Run.Status.QUEUED, Run.Status.RUNNING)
DECIDED = {
    SignOff.Decision.APPROVE: "Approved",
    SignOff.Decision.REJECT: "Rejected",
    SignOff.Decision.WAIVE: "Waived",
}


def release_report(release_id: int, *, plan: Mapping[str, Any] | None = None) -> ReleaseReport:
    """The release on the verdict that is stored; `plan` is what services.settle_plan says. Raises NotFound."""
    release = (
        Release.objects.select_related("policy", "verdict__policy", "created_by")
        .annotate(now=Now())
        .filter(pk=release_id)
        .first()
    )
    if release is None:
        raise NotFound(f"There is no release {release_id}.")
    [row] = rows_of(with_outcome(Release.objects.filter(pk=release_id)))
    verdict = release.verdict
    document: dict[str, Any] = verdict.document if verdict else {}
    policy = verdict.policy if verdict else release.policy
    gates = gate_reports(release_id, document, tolerance=policy.settings["tolerance_points"])
    headline = document.get("headline_gate", 0)
    sign_offs = list(SignOff.objects.filter(release=release).order_by("id"))
    settlings = list(Settling.objects.filter(release=release).select_related("asked_by").order_by("id"))
    return ReleaseReport(
        row=row,
        headline_gate=headline,
        reasons=lines(document.get("reasons", ())),
        warnings=(*_of_rules(document), *lines(document.get("warnings", ()))),
        next_steps=lines(document.get("next", ())),
        gates=gates,
        policy_name=policy.slug,
        policy_title=policy.title,
        policy_version=policy.version,
        policy_settings=policy.settings,
        input_digest=verdict.input_digest if verdict else "",
        candidates_tried=_candidates_tried(release_id, gates[headline]),
        settle=None if plan is None else _settle(plan),
        settling=_settling(settlings, gates),
        sign_offs=tuple(_sign_off(each, verdict, release.now) for each in sign_offs),
        story=tuple(sorted(_story(release, settlings, sign_offs), key=lambda line: line.at)),
    )


def _of_rules(document: Mapping[str, Any]) -> tuple[Line, ...]:
    """The warning of a verdict that is kept as it was signed; every other one is by today's rules."""
    if not document or document.get("rules", FIRST_RULES) == RULES:
        return ()
    text = "Taken and signed under an earlier version of the rules, and kept as it was signed."
    return (Line("earlier_rules", f"{text} To have it judged by today's, ask for the release again."),)


def _settle(plan: Mapping[str, Any]) -> SettlePlan:
    return SettlePlan(
        look=plan["look"],
        n_responses=plan["n_responses"],
        runs=tuple((each["run"], each["n_more"]) for each in plan["runs"]),
        minutes=plan["minutes"],
        refused=plan["refused"],
    )


def _candidates_tried(release_id: int, gate: GateReport) -> int:
    """How many runs were judged against the headline gate's baseline, up to this release and with it."""
    same = Gate.objects.filter(suite__slug=gate.suite, baseline_run=gate.baseline.run_id, release__lte=release_id)
    return int(same.aggregate(n=Count("candidate_run", distinct=True))["n"])


def _sign_off(row: SignOff, verdict: Verdict | None, now: datetime) -> SignOffLine:
    return SignOffLine(
        id=row.pk,
        person=row.person_name,
        decision=row.decision,
        note=row.note,
        expires_at=row.expires_at,
        created_at=row.created_at,
        input_digest=row.input_digest,
        made_with=row.made_with,
        digest=row.digest,
        void=_void(row, verdict, now),
    )


def _void(row: SignOff, verdict: Verdict | None, now: datetime) -> str:
    if verdict is None or row.input_digest != verdict.input_digest:
        return "What it was signed on has changed since; it says nothing of the present verdict."
    if row.expires_at is not None and row.expires_at <= now:
        return f"The waiver ended on {row.expires_at:%Y-%m-%d}."
    return ""


def _settling(settlings: list[Settling], gates: tuple[GateReport, ...]) -> str:
    """While repeats that a person asked for are at work, one sentence; else ""."""
    if not settlings:
        return ""
    status = {side.run_id: side.status for gate in gates for side in (gate.baseline, gate.candidate)}
    at_work = [each["run"] for each in settlings[-1].plan if status.get(each["run"]) in OPEN]
    if not at_work:
        return ""
    runs = f"run {at_work[0]}" if len(at_work) == 1 else "runs " + " and ".join(map(str, at_work))
    return f"Repeats up to the look at {settlings[-1].look} are at work on {runs}."


def _story(release: Release, settlings: list[Settling], sign_offs: list[SignOff]) -> Iterator[StoryLine]:
    creator = _name(release.created_by)
    yield StoryLine(at=release.created_at, code="created", text=f"Created under {release.policy}.", person=creator)
    verdicts = Verdict.objects.filter(release=release).select_related("policy").defer("document").order_by("id")
    for verdict in verdicts.annotate(summary=KT("document__summary")):
        under = f" (under {verdict.policy})" if verdict.policy_id != release.policy_id else ""
        text = f"{verdict_name(verdict.word).capitalize()}{under}. {verdict.summary or ''}".strip()
        yield StoryLine(at=verdict.decided_at, code="decided", text=text, person="")
    for settling in settlings:
        text = f"Repeats up to the look at {settling.look} asked for: {_plan_words(settling.plan)}."
        yield StoryLine(at=settling.created_at, code="settling", text=text, person=_name(settling.asked_by))
    for row in sign_offs:
        until = f" until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
        text = f"{DECIDED[SignOff.Decision(row.decision)]}{until}{f': {row.note}' if row.note else '.'}"
        yield StoryLine(at=row.created_at, code="signed", text=text, person=row.person_name)


def _plan_words(plan: list[dict[str, Any]]) -> str:
    return ", ".join(f"{each['n_more']} more of run {each['run']}" for each in plan if each["n_more"])


def _name(person: Any) -> str:
    return person.get_username() if person else ""
