"""REST of releases: judge a candidate, add repeats to decide, and sign."""

from functools import partial
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.release import ALL_CASES, CASES, OUTCOMES, Release, ReleaseRow, Settle, SignOff
from evalboard.contract.run import Rerun
from evalboard.contract.treatments import BY_INPUT, MODEL_TREATMENT, PAIRINGS, TREATMENTS
from runs.access import READ, RUN, SIGN, credential
from runs.api import query, wire
from runs.api.describe import describe, keyed, one_of, text
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Flag, Id, IdOrCurrent, Instant, Object, Strict, Text, Whole, read_body
from runs.models import Verdict
from runs.release.read import release_report
from runs.release.read_list import RELEASE_ORDERS, ReleaseFilter, sortable_releases
from runs.release.releases import create_release, rerun_sides
from runs.release.settling import NO_PLANS, settle_plans, settle_release
from runs.release.sign_offs import sign_release
from runs.release.verdicts import decide, decide_release
from runs.run import run_report
from runs.run.idempotency import HEADER, make_once
from runs.store import RecordList

MAX_GATES = 50
SIDES = ("baseline", "candidate")
FILTERS = {"suite": text("its slug"), "verdict": one_of(Verdict.Word.values), "outcome": one_of(OUTCOMES)}


class GateIn(Strict):
    suite = Text()
    candidate = Id()
    baseline = IdOrCurrent(default="current")
    tier = serializers.ChoiceField(["critical", "advisory"], default="critical")


class ReleaseIn(Strict):
    """One suite's fields, or `gates` with those of several."""

    suite = Text(required=False)
    candidate = Id(required=False)
    baseline = IdOrCurrent(required=False)
    gates = serializers.ListField(child=GateIn(), required=False, allow_empty=False, max_length=MAX_GATES)
    policy = Text(required=False)
    treatment = serializers.ChoiceField(TREATMENTS, default=MODEL_TREATMENT)
    pair_by = serializers.ChoiceField(PAIRINGS, default=BY_INPUT)
    nothing_caches = Flag(required=False)
    labels = Object(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Return what `create_release` takes: the gates as one list."""
        single = {name: attrs.pop(name) for name in ("suite", "candidate", "baseline") if name in attrs}
        if "gates" in attrs:
            if single:
                raise serializers.ValidationError(dict.fromkeys(single, "Give it within each of the gates."))
            return attrs
        missing = [name for name in ("suite", "candidate") if name not in single]
        if missing:
            raise serializers.ValidationError(dict.fromkeys(missing, "Must be given, unless gates are."))
        return {**attrs, "gates": [{"baseline": "current", "tier": "critical", **single}]}


class SignOffIn(Strict):
    decision = serializers.ChoiceField(["approve", "reject", "waive"])
    note = Text(required=False, allow_blank=True, default="")
    expires_at = Instant(required=False)
    input_digest = Text()
    after = Text(required=False, allow_blank=True)


class SettleIn(Strict):
    """The numbers of the plan that were agreed to; cases: which of the plans."""

    cases = serializers.ChoiceField(CASES, default=ALL_CASES)
    look = Whole(min_value=1)
    n_responses = Whole(min_value=1)


class SideIn(Strict):
    endpoint = Text(required=False)


class RerunIn(Strict):
    """The sides to run again, each with another endpoint or its own; gate: by default the headline's."""

    baseline = SideIn(required=False)
    candidate = SideIn(required=False)
    gate = Whole(required=False, min_value=0)
    profile = Text(required=False)
    is_reference = Flag(required=False)
    is_shuffled = Flag(required=False)


def _list(**sent: str) -> RecordList[ReleaseRow]:
    """List releases with their last verdict; reading one release judges it again if needed."""
    return sortable_releases(ReleaseFilter(**sent))


def _report(release_id: int) -> Release:
    return release_report(release_id, plans=settle_plans(release_id=release_id))


RELEASE = Resource("release", Release, _report)
release_list = serve(
    RELEASE.listed("releases", "Releases, newest first", ReleaseRow, _list, RELEASE_ORDERS, FILTERS),
    RELEASE.made("Judge a candidate", ReleaseIn, create_release, refuses=[404, 409]),
)


@resource(GET=READ)
@describe("GET", "A release with its verdict", name="release", answer=Release, refuses=[409])
def release_detail(request: Request, release_id: int) -> Response:
    query.read(request, is_paged=False)
    decided = decide(release_id=release_id)
    is_open = decided.verdict.word == Verdict.Word.INCONCLUSIVE
    plans = settle_plans(release_id=release_id, gates=decided.gates) if is_open else NO_PLANS
    return wire.answer(release_report(release_id, plans=plans, decided=decided), request)


@resource(POST=SIGN)
@describe("POST", "Sign a verdict", name="sign_release", body=SignOffIn, status=201, answer=SignOff, refuses=[409])
def sign(request: Request, release_id: int) -> Response:
    """Answer 409 if the release's inputs or its sign-offs are no longer those that the person saw."""
    body = read_body(SignOffIn, request)
    row, was_there = sign_release(release_id=release_id, **body, user=request.user, made_with=credential(request))
    [line] = [each for each in release_report(release_id).signoffs if each.id == str(row.pk)]
    return wire.answer(line, request, status=201, headers=wire.replayed(was_there))


@resource(POST=RUN)
@describe(
    "POST",
    "Run sides of a release again",
    name="rerun",
    body=RerunIn,
    takes_headers=keyed(HEADER),
    status=201,
    answer=Rerun,
    refuses=[404, 409, 422],
)
def rerun(request: Request, release_id: int) -> Response:
    order = read_body(RerunIn, request)
    sides: dict[str, str | None] = {side: order.pop(side).get("endpoint") for side in SIDES if side in order}
    make = partial(rerun_sides, release_id=release_id, sides=sides, **order, user=request.user)
    runs, was_made_before = make_once(request.headers.get(HEADER), request.data, request.user, make)
    again = dict(zip(sides, runs, strict=True))
    shown = {side: run_report(again[side].pk) if side in again else None for side in SIDES}
    return wire.answer(Rerun(**shown), request, status=201, headers=wire.replayed(was_made_before))


@resource(GET=READ, POST=RUN)
@describe("GET", "What settling would cost", name="settle_plan", answer=Settle, refuses=[409])
@describe("POST", "Add the repeats that settle it", name="settle", body=SettleIn, answer=Release, refuses=[409])
def settle(request: Request, release_id: int) -> Response:
    """GET: the cost of deciding, null if repeats would not help. POST: the same numbers confirm it."""
    query.read(request, is_paged=False)
    if request.method == "POST":
        settle_release(release_id=release_id, **read_body(SettleIn, request), user=request.user)
    decide_release(release_id=release_id)
    report = _report(release_id)
    if request.method == "POST":
        return wire.answer(report, request)
    return wire.answer(Settle(plan=report.settle, targeted=report.settle_targeted, settling=report.settling), request)
