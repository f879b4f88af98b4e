"""One release as its page and `GET /releases/{id}/` show it, in a fixed number of queries.

An open page asks every few seconds for its stage alone, for which nothing of a verdict's document is read.
"""

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.db.models.fields.json import KT, KeyTextTransform
from django.db.models.functions import Now
from django.urls import reverse

from evalboard.contract import release as contract
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.release import FIRST_VERDICT_RULES, VERDICT_RULES, find_other_causes
from evalboard.wording.numbers import counted
from evalboard.wording.other_causes import write_other_cause
from evalboard.wording.release_names import verdict_name
from evalboard.wording.release_warnings import warning, weigh
from runs import sign_off_chain
from runs.catalogue import expiry
from runs.compare import read_computations
from runs.models import GateRecord, PolicyRecord, ReleaseRecord, RunRecord, Settling, SignOffRecord, Verdict
from runs.release import verdict_inputs
from runs.release.read_gates import read_gates
from runs.release.read_list import VOID, with_outcome
from runs.release.settling import NO_PLANS, SettlePlans
from runs.release.verdict_check import require_document
from runs.release.verdicts import Decided
from runs.store import require_row

OPEN = (RunRecord.Status.QUEUED, RunRecord.Status.RUNNING)
RUN_FACTS = ("run", "side", "candidates")  # facts of a warning that differ where the same holds for another run
DECIDED = {
    SignOffRecord.Decision.APPROVE: "Approved",
    SignOffRecord.Decision.REJECT: "Rejected",
    SignOffRecord.Decision.WAIVE: "Waived",
}


def release_report(
    release_id: int, *, plans: SettlePlans = NO_PLANS, decided: Decided | None = None
) -> contract.Release:
    """Return the release with its stored verdict. Raises NotFound. plans: from settle_plans.

    decided: the result of a preceding `verdicts.decide`; its gates are then not read again.
    """
    releases = with_outcome(ReleaseRecord.objects.filter(pk=release_id))
    release = require_row(
        releases.select_related("policy", "verdict__policy", "created_by").annotate(now=Now()),
        f"There is no release {release_id}.",
    )
    verdict: Verdict | None = release.verdict
    if verdict is not None:
        require_document(verdict)
    document: dict[str, Any] = verdict.document if verdict else {}
    headline = document.get("headline_gate", 0)
    stored = verdict_inputs.read_release_gates(release) if decided is None else decided.gates
    policy = verdict.policy if verdict else release.policy
    word = verdict.word if verdict else None
    gates = read_gates(
        stored,
        _expired(stored, decided),
        document.get("gates", ()),
        {}
        if release.terms.is_prompt
        else read_computations([(gate.baseline_run_id, gate.candidate_run_id) for gate in stored]),
        tolerance=policy.settings["tolerance_points"],
        word=word,
        terms=release.terms,
    )
    warnings = tuple(_warnings(document, gates, word))
    sign_offs = list(SignOffRecord.objects.filter(release=release).order_by("id"))
    outcome = VOID if sign_offs and sign_off_chain.seal_problem(sign_offs[-1]) else release.outcome
    settlings = list(Settling.objects.filter(release=release).select_related("asked_by").order_by("id"))
    return contract.Release(
        id=str(release.pk),
        verdict=word,
        outcome=outcome,
        reasons=_findings(document.get("reasons", ())),
        summary=document.get("summary") or "",
        summary_bold=(bold := document.get("summary_bold")) and (bold[0], bold[1]),
        next=tuple(contract.NextStep.from_stored({"sides": (), **line}) for line in document.get("next", ())),
        headline_gate=headline,
        gates=gates,
        policy=_policy(policy),
        treatment=release.treatment,
        pair_by=release.pair_by,
        input_digest=verdict.input_digest if verdict else None,
        candidates_tried=_candidates_tried(release_id, gates[headline]),
        settle=plans.whole,
        settle_targeted=plans.targeted,
        settling=_settling_words(settlings, _run_statuses(stored)),
        signoffs=tuple(_sign_off(each, verdict, release.now) for each in sign_offs),
        warnings=warnings,
        other_causes=tuple(map(write_other_cause, find_other_causes(gates, warnings, word, release.treatment))),
        labels=release.labels,
        created_by=release.created_by.get_username() if release.created_by else None,
        created_at=release.created_at,
        decided_at=verdict.decided_at if verdict else None,
        url=reverse("release", args=[release.pk]),
        story=tuple(sorted(_story(release, settlings, sign_offs), key=lambda line: line.at)),
    )


def _expired(gates: Sequence[GateRecord], decided: Decided | None) -> Container[int]:
    """Return the ids of the gates whose baseline has expired."""
    if decided is None or decided.inputs is None:
        return expiry.expired(gates)
    return {each.gate.pk for each in decided.inputs.gates if each.expired is not None}


def _findings(lines: Sequence[Mapping[str, Any]]) -> tuple[contract.Finding, ...]:
    return tuple(contract.Finding.from_stored(line) for line in lines)


def _warnings(
    document: Mapping[str, Any], gates: Sequence[contract.Gate], word: str | None
) -> Iterator[contract.ReleaseWarning]:
    """Yield the warnings, merging those with equal facts except the run, or equal texts within a gate."""
    sentences = defaultdict(list)  # of each gate by code: its own lines do not name its suite
    if document and document.get("rules", FIRST_VERDICT_RULES) != VERDICT_RULES:
        code = "earlier_rules"  # any verdict that is not kept as it was signed is by today's
        weight = weigh(code, gates[document["headline_gate"]], word)
        yield contract.ReleaseWarning.from_stored({"code": code, "text": warning(code, {})}, **weight)
    for place, gate in enumerate(document.get("gates", ())):
        for line in gate["warnings"]:
            sentences[place, line["code"]].append(line["text"])
    for line in document.get("warnings", ()):
        own = sentences[line.get("gate"), line["code"]]
        sentence = own.pop(0) if own else line["text"]
        facts = line.get("facts")  # of one that is about a single run
        run = None if facts is None else str(facts["run"])
        shared = facts and {name: value for name, value in facts.items() if name not in RUN_FACTS}
        alike = canonical_json([line["code"], sentence if facts is None else shared]).decode()
        weight = weigh(line["code"], gates[line["gate"]], word)
        yield contract.ReleaseWarning.from_stored(line, run=run, alike=alike, **weight)


def _policy(policy: PolicyRecord) -> contract.PolicyOfRelease:
    settings = policy.settings
    return contract.PolicyOfRelease(
        name=policy.slug,
        version=policy.version,
        title=policy.title,
        rule=settings["rule"],
        tolerance_points=settings["tolerance_points"],
        guard=settings["guard_points"] if settings["rule"] == "strict" else None,
    )


def _candidates_tried(release_id: int, gate: contract.Gate) -> int:
    """Count the runs judged against the headline gate's baseline, up to this release."""
    same = GateRecord.objects.filter(suite__slug=gate.suite, baseline_run=gate.baseline.run_id, release__lte=release_id)
    return int(same.aggregate(n=Count("candidate_run", distinct=True))["n"])


def _sign_off(row: SignOffRecord, verdict: Verdict | None, now: datetime) -> contract.SignOff:
    return contract.SignOff.from_record(
        row,
        id=str(row.pk),
        person=row.person_name,
        made_with=row.made_with or None,
        void=_void(row, verdict, now),
    )


def _void(row: SignOffRecord, verdict: Verdict | None, now: datetime) -> str | None:
    if problem := sign_off_chain.seal_problem(row):
        return problem
    if verdict is None or row.input_digest != verdict.input_digest:
        return "Its inputs have changed since; it does not apply to the current verdict."
    if row.expires_at is not None and row.expires_at <= now:
        return f"The waiver ended on {row.expires_at:%Y-%m-%d}."
    return None


def _run_statuses(gates: Sequence[GateRecord]) -> dict[int, str]:
    """Return run id → its status, baseline before candidate, gate by gate."""
    return {run.pk: run.status for gate in gates for run in (gate.baseline_run, gate.candidate_run)}


def _settling_words(settlings: Sequence[Settling], status: Mapping[int, str]) -> str | None:
    """Say which requested repeats are running; None without any. status: by run."""
    if not settlings:
        return None
    at_work = [each["run"] for each in settlings[-1].plan if status.get(each["run"]) in OPEN]
    if not at_work:
        return None
    runs = f"run {at_work[0]}" if len(at_work) == 1 else "runs " + " and ".join(map(str, at_work))
    return f"{_settling_name(settlings[-1])} are at work on {runs}."


def _settling_name(settling: Settling) -> str:
    n_cases = settling.plan[0].get("n_chosen")
    if n_cases is None:
        return f"Repeats up to {settling.look} a side"
    return f"Repeats of the {counted(n_cases, 'case')} most likely to flip"


def _story(
    release: ReleaseRecord, settlings: list[Settling], sign_offs: list[SignOffRecord]
) -> Iterator[contract.StoryLine]:
    text = f"Created under {release.policy}."
    yield contract.StoryLine(at=release.created_at, code="created", text=text, person=_name(release.created_by))
    verdicts = Verdict.objects.filter(release=release).select_related("policy").defer("document").order_by("id")
    for verdict in verdicts.annotate(summary=KT("document__summary")):
        under = f" (under {verdict.policy})" if verdict.policy_id != release.policy_id else ""
        text = f"{verdict_name(verdict.word).capitalize()}{under}."
        yield contract.StoryLine(at=verdict.decided_at, code="decided", text=text, summary=verdict.summary or "")
    for settling in settlings:
        more = {each["run"]: each["n_more"] for each in settling.plan if each["n_more"]}
        parts = ", ".join(f"{n} more of run {run}" for run, n in more.items())
        yield contract.StoryLine(
            at=settling.created_at,
            code="settling",
            text=f"{_settling_name(settling)} asked for: {parts}.",
            person=_name(settling.asked_by),
            runs=tuple(more),
        )
    for row in sign_offs:
        until = f" until {row.expires_at:%Y-%m-%d}" if row.expires_at else ""
        text = f"{DECIDED[SignOffRecord.Decision(row.decision)]}{until}{f': {row.note}' if row.note else '.'}"
        yield contract.StoryLine(at=row.created_at, code="signed", text=text, person=row.person_name)


def _name(person: Any) -> str:
    return person.get_username() if person else ""


@dataclass(frozen=True, slots=True)
class ReleaseStage:
    """The state that decides whether an open page must reload. statuses: by run."""

    headline_gate: int
    input_digest: str | None
    settling: str | None
    outcome: str
    statuses: Mapping[int, str]

    def digest(self, progress: str) -> str:
        """Return the digest of what a page shows. progress: its comparison's status, "" without one."""
        return digest_json(
            [self.input_digest, self.settling, self.outcome, progress, *self.statuses.values()],
        )[:16]


def shown_stage(report: contract.Release) -> ReleaseStage:
    """Return the stage of a page that shows this report."""
    return ReleaseStage(
        headline_gate=report.headline_gate,
        input_digest=report.input_digest,
        settling=report.settling,
        outcome=report.outcome,
        statuses={side.run_id: side.status for side in report.sides},
    )


def release_stage(decided: Decided) -> ReleaseStage:
    """Return the same without a report, in two queries at most."""
    release_id = decided.verdict.release_id
    statuses = _run_statuses(decided.gates)
    is_at_work = any(status in OPEN for status in statuses.values())
    settlings = Settling.objects.filter(release=release_id).order_by("id") if is_at_work else ()
    releases = with_outcome(ReleaseRecord.objects.filter(pk=release_id))
    headline_gate = KeyTextTransform("headline_gate", "verdict__document")
    release = releases.values("outcome", headline_gate=headline_gate).get()
    return ReleaseStage(
        headline_gate=int(release["headline_gate"] or 0),
        input_digest=decided.verdict.input_digest,
        settling=_settling_words(list(settlings), statuses),
        outcome=release["outcome"],
        statuses=statuses,
    )
