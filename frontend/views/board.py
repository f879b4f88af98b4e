"""The board: what needs somebody."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend import findings
from runs import selectors
from runs.access import READ, requires


@requires(READ)
@require_safe
def board(request: HttpRequest) -> HttpResponse:
    board = selectors.board()
    page = {
        "board": board,
        "finding": findings.of_board(board),
        "deserted": tuple((pool, findings.of_desertion(pool)) for pool in board.deserted_pools),
    }
    return render(request, "frontend/board.html", page)
