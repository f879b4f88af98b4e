"""What was deleted of a run's answers, in words."""

from evalboard.wording.case import describe_deletion
from runs.models import DeletionRecord, RunRecord


def list_deletions(run: RunRecord, case_id: str | None = None) -> list[str]:
    """Return a sentence for each deletion: of the run, and of one case of its suite version, or of all.

    A rule for texts deleted the traces too, so that the newest deletion of the run says it all.
    """
    cases = DeletionRecord.objects.filter(suite_version=run.suite_version_id, run=None)
    if case_id is not None:
        cases = cases.filter(case_id=case_id)
    own = DeletionRecord.objects.filter(run=run.pk).order_by("-id")[:1] if run.traces_deleted_at is not None else ()
    return [describe_deletion(gone.what, gone.at, gone.why, gone.case_id) for gone in (*own, *cases)]
