"""Suites enter here; a version is never changed once stored."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max

from evalboard.core import scoring
from evalboard.core.suite import CaseDocument, SuiteDocument, parse_suite
from runs.models import Case, Scorer, Suite, SuiteVersion

CASES_PER_INSERT = 2000


def push_suite(*, document: Mapping[str, Any]) -> tuple[SuiteVersion, bool]:
    """Store a suite document as the suite's newest version; False if that content is already stored.

    Raises InvalidInput, naming each field that is wrong; then nothing is stored.
    """
    parsed = parse_suite(document)
    plan = scoring.plan(parsed.scorer, {case.id: case.scorer for case in parsed.cases if case.scorer is not None})
    with transaction.atomic():
        suite, _ = Suite.objects.get_or_create(slug=parsed.slug)
        Suite.objects.select_for_update().get(pk=suite.pk)  # two pushes of one suite take turns
        known = suite.versions.filter(digest=parsed.digest).first()
        if known is not None:
            return known, False
        return _store_version(suite, parsed, store_scorer(plan)), True


def store_scorer(plan: Mapping[str, Any]) -> Scorer:
    """Return the scorer of a plan, storing it the first time."""
    scorer, _ = Scorer.objects.get_or_create(digest=scoring.plan_digest(plan), defaults={"spec": plan})
    return scorer


def _store_version(suite: Suite, parsed: SuiteDocument, scorer: Scorer) -> SuiteVersion:
    newest = suite.versions.aggregate(number=Max("number"))["number"] or 0
    version = SuiteVersion.objects.create(
        suite=suite,
        number=newest + 1,
        digest=parsed.digest,
        title=parsed.title,
        max_tokens=parsed.max_tokens,
        stop=list(parsed.stop),
        scorer=scorer,
        n_cases=len(parsed.cases),
    )
    Case.objects.bulk_create(
        (_case_row(version, case) for case in parsed.cases),
        batch_size=CASES_PER_INSERT,
    )
    return version


def _case_row(version: SuiteVersion, case: CaseDocument) -> Case:
    content: dict[str, Any] = {"messages": list(case.messages), "target": case.target}
    if case.tools:
        content["tools"] = list(case.tools)
    return Case(
        suite_version=version,
        index=case.index,
        case_id=case.id,
        digest=case.digest,
        content=content,
        tags=list(case.tags),
        group=case.group,
        is_reference=case.is_reference,
    )
