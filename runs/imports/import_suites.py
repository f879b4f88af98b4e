"""Store and load the suite versions that logs name or create (`evalboard.logged.suites`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models import OuterRef, Subquery

from evalboard.core import scoring
from evalboard.importers.records import LoggedRun
from evalboard.logged.suites import Message, made_of, make_document, own_slug, recorded_plan, slug_of, unknown_prompt
from runs.models import Scorer, Suite, SuiteVersionRecord
from runs.suites import push_suite, store_scorer


class StoredShelf:
    """The suites of this installation; a `logged.suites.Shelf`."""

    def newest(self, slug: str) -> SuiteVersionRecord | None:
        suite = Suite.objects.filter(slug=slug).first()
        return None if suite is None else suite.versions.select_related("suite", "scorer").order_by("-number").first()

    def with_digest(self, digest: str) -> Iterable[SuiteVersionRecord]:
        return SuiteVersionRecord.objects.filter(digest=digest).select_related("suite", "scorer").order_by("pk")

    def newest_with(self, case_id: str, n_cases: int) -> Iterable[SuiteVersionRecord]:
        newest = SuiteVersionRecord.objects.filter(suite=OuterRef("suite")).order_by("-number").values("number")[:1]
        shown = SuiteVersionRecord.objects.filter(suite__judged_suite=None)
        versions = shown.filter(number=Subquery(newest), n_cases=n_cases)
        return versions.filter(cases__case_id=case_id).select_related("suite", "scorer").order_by("-pk")

    def scored_by(self, slug: str, plan: Mapping[str, Any]) -> Iterable[SuiteVersionRecord]:
        versions = SuiteVersionRecord.objects.filter(suite__slug=slug, scorer__digest=scoring.plan_digest(plan))
        return versions.select_related("suite", "scorer").order_by("-number")

    def push(self, document: Mapping[str, Any]) -> SuiteVersionRecord:
        return push_suite(document=document)[0]

    def messages(self, version: SuiteVersionRecord) -> Mapping[str, Sequence[Message]]:
        return dict(version.cases.values_list("case_id", "content__messages"))

    def indexes(self, version: SuiteVersionRecord) -> Mapping[str, int]:
        return dict(version.cases.values_list("case_id", "index"))

    def has_all(self, version: SuiteVersionRecord, digests: set[str]) -> bool:
        return version.cases.filter(digest__in=digests).count() == len(digests)


SHELF = StoredShelf()


def recorded_scorer(logged: LoggedRun, name: str = "") -> Scorer:
    """Return the scorer that represents a tool's scores of a name, or the absence of scores."""
    return store_scorer(recorded_plan(logged, name))


def fill_prompts(version: SuiteVersionRecord, logged: LoggedRun, *, tool: str) -> SuiteVersionRecord:
    """Return a version with the same cases in order, with prompts and settings from a log."""
    by_id = {case.id: case for case in logged.cases}
    ordered = version.cases.order_by("index").values_list("case_id", flat=True)
    whole = replace(logged, tool=tool, cases=tuple(by_id[case_id] for case_id in ordered))
    document = make_document(own_slug(slug_of(logged.slug), whole, SHELF), whole)
    known: SuiteVersionRecord | None = made_of(document, SHELF)
    return known or SHELF.push(document)


def lacks_prompts(version: SuiteVersionRecord) -> bool:
    """Tell whether a version has a case without a prompt."""
    return version.cases.filter(content__messages=unknown_prompt()).exists()
