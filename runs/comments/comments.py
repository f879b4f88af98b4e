"""Comments on runs, cases and releases: written, withdrawn and listed."""

from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evalboard.contract.comment import COMMENTED, MAX_COMMENT, Comment
from evalboard.core.errors import InvalidInput, NotFound, Refused
from runs.models import CommentRecord
from runs.store import RecordList, require_row, storable
from runs.webhooks.follows import named_rows, page_path

COMMENT_ORDERS = {"created_at": "id"}


@transaction.atomic
def create_comment(*, kind: str, name: str, text: str, user: Any) -> CommentRecord:
    """Store a comment. Raises InvalidInput or NotFound.

    name: id of a run or release, of a case "suite/id".
    """
    text = text.strip()
    if not text or len(text) > MAX_COMMENT or storable(text) != text:
        raise InvalidInput("The comment is not valid.", fields={"text": f"Write 1 to {MAX_COMMENT:,} characters."})
    return CommentRecord.objects.create(**_subject(kind, name), text=text, person=user)


@transaction.atomic
def withdraw_comment(*, comment_id: int, user: Any, may_all: bool = False) -> CommentRecord:
    """Remove the text of a comment of one's own, with `may_all` of anybody's. Twice is once.

    Raises NotFound, or Refused for a comment of another person.
    """
    comments = CommentRecord.objects.select_for_update(of=("self",)).select_related(*RELATED)
    comment = require_row(comments.filter(pk=comment_id), f"There is no comment {comment_id}.")
    if comment.person_id != user.pk and not may_all:
        raise Refused("Only its author or an admin withdraws a comment.")
    if comment.withdrawn_at is None:
        comment.text, comment.withdrawn_at = "", Now()
        comment.save(update_fields=["text", "withdrawn_at"])
        comment.refresh_from_db(fields=["withdrawn_at"])
    return comment


def comments_on(kind: str, name: str, *, n: int) -> tuple[Comment, ...]:
    """Return the newest n comments of a subject that is there, oldest first."""
    suite, _, case = name.partition("/")
    subject: dict[str, Any] = {"suite__slug": suite, "case": case} if kind == "case" else {kind: int(name)}
    comments = CommentRecord.objects.filter(**subject).select_related(*RELATED)
    return tuple(map(comment_row, comments.order_by("-id")[:n]))[::-1]


def comment_rows(kind: str = "", name: str = "") -> RecordList[Comment]:
    """Return comments newest first: of one subject, of a kind, or all. Raises InvalidInput or NotFound."""
    comments = CommentRecord.objects.select_related(*RELATED)
    if name and not kind:
        raise InvalidInput("The query is not valid.", fields={"kind": "Give it with name."})
    if name:
        comments = comments.filter(**_subject(kind, name))
    elif kind:
        comments = comments.filter(Q(**{f"{'suite' if kind == 'case' else kind}__isnull": False}))
    return RecordList(comments, lambda records: tuple(map(comment_row, records)), COMMENT_ORDERS)


RELATED = ("person", "suite")


def comment_row(comment: CommentRecord) -> Comment:
    """Return the contract of a comment."""
    if comment.suite is not None:
        kind, name = "case", f"{comment.suite.slug}/{comment.case}"
    else:
        kind, name = (
            ("run", str(comment.run_id)) if comment.run_id is not None else ("release", str(comment.release_id))
        )
    return Comment.from_record(
        comment,
        id=str(comment.pk),
        kind=kind,
        name=name,
        person=None if comment.person is None else comment.person.get_username(),
        url=f"{page_path(kind, name)}#comment-{comment.pk}",
    )


def read_comment(comment_id: int) -> Comment:
    """Return one comment. Raises NotFound."""
    comments = CommentRecord.objects.select_related(*RELATED)
    return comment_row(require_row(comments.filter(pk=comment_id), f"There is no comment {comment_id}."))


def _subject(kind: str, name: str) -> dict[str, Any]:
    """Return the columns that name a subject. Raises NotFound, or InvalidInput for another kind."""
    if kind not in COMMENTED:
        raise InvalidInput("There are no comments on it.", fields={"kind": f"Must be one of: {', '.join(COMMENTED)}."})
    row = named_rows(kind, name).first()
    if row is None:
        raise NotFound(f"There is no {kind} {name}.")
    if kind == "case":
        return {"suite_id": row.suite_version.suite_id, "case": row.case_id}
    return {f"{kind}_id": row.pk}
