"""Comments: listed, written, and withdrawn by their author."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.comment import COMMENTED, Comment
from runs.access import ADMIN, RUN
from runs.api import query, wire
from runs.api.authentication import scopes_of
from runs.api.describe import describe
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Strict, Text
from runs.comments.comments import comment_row, comment_rows, create_comment, read_comment, withdraw_comment


class CommentIn(Strict):
    kind = serializers.ChoiceField(list(COMMENTED))
    name = Text()
    text = Text()


FILTERS: dict[str, dict[str, Any]] = {
    "kind": {"type": "string", "enum": list(COMMENTED)},
    "name": {"type": "string", "description": "id of a run or release; of a case SUITE/ID"},
}
COMMENT = Resource("comment", Comment, comment_row, takes_record=True)

comment_list = serve(
    COMMENT.listed("comments", "Comments, newest first", Comment, comment_rows, filters=FILTERS, refuses=[404]),
    COMMENT.made("Comment on a run, a case or a release", CommentIn, create_comment, is_located=False, refuses=[404]),
)


@resource(DELETE=RUN)
@describe(
    "DELETE",
    "Withdraw a comment of one's own: its text is removed",
    name="withdraw_comment",
    answer=Comment,
    refuses=[404],
)
def comment_detail(request: Request, comment_id: int) -> Response:
    query.read(request, is_paged=False)
    withdraw_comment(comment_id=comment_id, user=request.user, may_all=ADMIN in scopes_of(request))
    return wire.answer(read_comment(comment_id), request)
