"""The board: what needs somebody."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from runs import selectors
from runs.access import READ, requires


@requires(READ)
@require_safe
def board(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/board.html", {"board": selectors.board()})
