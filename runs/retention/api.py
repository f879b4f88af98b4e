"""Rules of retention, and deletion of one case, for admins; tombstones, for everybody."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.retention import WHAT, Deletion, DueDeletion, RetentionRule, SuiteStorage
from runs.access import ADMIN, READ
from runs.api import pages, query, wire
from runs.api.describe import describe
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Strict, Text, Whole, read_body
from runs.retention import read
from runs.retention.retention import create_rule, delete_rule, purge_case


class RetentionRuleIn(Strict):
    what = serializers.ChoiceField(list(WHAT))
    days = Whole()
    suite = Text(required=False)
    label = Text(required=False)  # type: ignore[assignment]  # the base class has one, which a field replaces


class CaseDeletionIn(Strict):
    """`voids_sign_offs`: it is known that sign-offs on runs of the case become void."""

    suite = Text()
    case = Text()
    reason = Text()
    voids_sign_offs = serializers.BooleanField(required=False)


RULE = Resource("retention_rule", RetentionRule, read.rule_row, reads=ADMIN, changes=ADMIN)

rule_list = serve(
    RULE.listed("retention_rules", "Rules that delete old answers", RetentionRule, read.rule_rows),
    RULE.made("Make a rule, which is followed from the next sweep on", RetentionRuleIn, create_rule, refuses=[404]),
)
rule_detail = serve(
    RULE.one("A rule of retention"), RULE.deleted("Forget a rule; what it deleted stays deleted", delete_rule)
)
due_list = serve(
    RULE.listed("due_deletions", "Exactly what the rules would delete now", DueDeletion, read.due_rows),
)
storage_list = serve(
    RULE.listed("suite_storage", "What each suite's runs take in the database", SuiteStorage, read.storage_rows),
)


@resource(GET=READ)
@describe("GET", "What was deleted by rules and people, newest first", name="deletions", answer=Page[Deletion])
def deletion_list(request: Request) -> Response:
    query.read(request)
    return pages.answer_list(request, read.deletions(), ordering="")


@resource(POST=ADMIN)
@describe(
    "POST",
    "Delete the texts of a case: its prompt in every version of the suite, and all answers to it",
    name="purge_case",
    body=CaseDeletionIn,
    status=201,
    answer=Page[Deletion],
    refuses=[404, 409],
)
def purge(request: Request) -> Response:
    """Answer with a tombstone for each version of the suite that has the case."""
    body = read_body(CaseDeletionIn, request)
    gone = purge_case(case_id=body.pop("case"), **body, user=request.user)
    rows = [read.deletion_row(each.pk) for each in gone]
    return wire.answer(Page[Deletion](results=tuple(rows), next=None, previous=None), request, status=201)
