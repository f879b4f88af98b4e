"""Labels taken and removed: what a person says of an answer, right or wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from evalboard.core.digest import text_digest
from evalboard.core.document import Problems
from runs import acts
from runs.labels.answers import load_run, read_answers
from runs.models import Case, LabelRecord, ResponseRecord, RunRecord
from runs.store import require_row

MAX_LABELS = 1000  # at a time


def label_answers(*, run_id: int, labels: Sequence[Mapping[str, Any]], user: Any) -> RunRecord:
    """Store what a person says of a run's answers, in place of what they said of them before.

    labels: each with `case`, `is_right`, and either `repeat` or the answer's `text`. All are stored, or none.
    Raises NotFound, Conflict, or InvalidInput with fields.
    """
    run = load_run(run_id)
    acts.require("label", run)
    problems = Problems()
    if not 0 < len(labels) <= MAX_LABELS:
        problems.add("labels", f"Send 1 to {MAX_LABELS:,} labels at a time; these are {len(labels):,}.")
        problems.raise_if_any("No label was stored")
    cases = {
        case.case_id: case
        for case in Case.objects.filter(
            suite_version=run.suite_version_id, case_id__in={str(each["case"]) for each in labels}
        ).only("case_id", "index", "digest")
    }
    given = _given(run, [case.index for case in cases.values()])
    values: dict[tuple[str, bytes], float] = {}
    for number, each in enumerate(labels):
        place, case = f"labels[{number}]", cases.get(each["case"])
        repeat, text = each.get("repeat"), each.get("text")
        if case is None:
            problems.add(f"{place}.case", f"The suite of run {run_id} has no case {each['case']}.")
        elif (repeat is None) == (text is None):
            problems.add(place, "Name the answer by repeat or by text: one of the two.")
        elif repeat is not None and (case.index, repeat) not in given:
            problems.add(f"{place}.repeat", f"Repeat {repeat} of run {run_id} has no answer to case {case.case_id}.")
        elif text is not None and text_digest(text) not in given.get((case.index, None), ()):
            problems.add(f"{place}.text", f"Run {run_id} never gave this answer to case {case.case_id}.")
        else:
            [digest] = given[case.index, repeat] if text is None else [text_digest(text)]
            values[case.digest, digest] = float(each["is_right"])
    problems.raise_if_any("No label was stored")
    LabelRecord.objects.bulk_create(
        [
            LabelRecord(suite=run.suite_version.suite, case_digest=case, text_digest=text, person=user, value=value)
            for (case, text), value in values.items()
        ],
        update_conflicts=True,
        unique_fields=["suite", "case_digest", "text_digest", "person"],
        update_fields=["value"],
    )
    return run


def _given(run: RunRecord, indexes: Sequence[int]) -> dict[tuple[int, int | None], set[bytes]]:
    """Return digests of the answers to some cases, by case index and repeat; None has all repeats."""
    given: dict[tuple[int, int | None], set[bytes]] = {}
    there = ResponseRecord.objects.filter(
        repeat__in=run.repeats.filter(cases=None, columns__isnull=False), case_index__in=indexes, error_code=""
    )
    for index, repeat, digest in there.values_list("case_index", "repeat__index", "text_digest"):
        for key in ((index, repeat), (index, None)):
            given.setdefault(key, set()).add(bytes(digest or b""))
    return given


def remove_label(*, run_id: int, repeat: int, case: str, user: Any) -> None:
    """Remove what a person says of an answer. Raises NotFound where they say nothing, or Conflict."""
    run = load_run(run_id)
    acts.require("label", run)
    missing = f"You have no label on repeat {repeat} of case {case} of run {run_id}."
    answered = require_row(Case.objects.filter(suite_version=run.suite_version_id, case_id=case), missing)
    digests = _given(run, [answered.index]).get((answered.index, repeat), set())
    own = LabelRecord.objects.filter(
        suite=run.suite_version.suite_id, case_digest=answered.digest, text_digest__in=digests, person=user
    )
    require_row(own, missing).delete()


@transaction.atomic
def undo_label(*, run_id: int, user: Any) -> bool:
    """Remove a person's newest label of a run's answers; return False if they have none."""
    run = load_run(run_id)
    acts.require("label", run)
    own = read_answers(run, user).own
    return bool(own) and LabelRecord.objects.filter(pk=own[-1].id, person=user).delete()[0] > 0
