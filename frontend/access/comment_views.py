"""Comments are written and withdrawn here, and shown on the pages of what they are about."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from frontend.shell.forms import once, posted_from, reporting
from runs.access import ADMIN, RUN, may, requires
from runs.comments import create_comment, withdraw_comment
from runs.comments.comments import read_comment


@requires(RUN)
@posted_from("board")
@once
def comment(request: HttpRequest) -> HttpResponse:
    sent = {name: request.POST.get(name, "") for name in ("kind", "name", "text")}
    with reporting(request):
        made = create_comment(**sent, user=request.user)
        return redirect(read_comment(made.pk).url)
    return redirect("board")


@requires(RUN)
@posted_from("board")
def withdraw(request: HttpRequest, comment_id: int) -> HttpResponse:
    where = read_comment(comment_id).url
    with reporting(request):
        withdraw_comment(comment_id=comment_id, user=request.user, may_all=may(request.user, ADMIN))
        messages.success(request, "The comment was withdrawn.")
    return redirect(where)
