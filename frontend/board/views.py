"""The board: decisions that wait, what needs attention, and running work."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.board import rows, tour
from frontend.board.words import describe_board
from frontend.shell.forms import posted_from
from frontend.shell.live import answer_part, digest_of
from runs import board as board_slice
from runs.access import READ, SIGN, may, requires
from runs.tour import end_tour, tour_of

BANDS_PART = "bands"


@requires(READ)
@require_safe
def board(request: HttpRequest) -> HttpResponse:
    page = _page(request)
    if request.GET.get("part") != BANDS_PART:
        return render(request, "board/page.html", page | _tour(request))
    return answer_part(request, "board/_bands.html", page, seen=page["seen"])


@requires(READ)
@posted_from("board")
def leave_tour(request: HttpRequest) -> HttpResponse:
    """End the tour for this person, for good."""
    end_tour(user=request.user)
    return redirect("board")


def _tour(request: HttpRequest) -> dict[str, Any]:
    """Return the board's line about the tour; empty for a person who has ended it."""
    offered = tour_of(request.user)
    return {"tour": offered, "stops": tour.stops(offered)} if offered else {}


def _page(request: HttpRequest) -> dict[str, Any]:
    board = board_slice.board()
    listed, folded = rows.split_sample(board.waiting)
    page = {
        "board": board,
        "finding": describe_board(board, listed, may_sign=may(request.user, SIGN)),
        "lines": rows.release_lines(listed, request.user),
        "folded": rows.release_lines(folded, request.user),
        "needs": rows.needs(board),
        "work": rows.work_lines(board),
        "now": timezone.now(),
    }
    shown = (
        page["finding"],
        page["lines"],
        page["folded"],
        page["needs"],
        page["work"],
        board.signed,
        board.rotations,
        board.schedules,
    )
    return page | {"seen": digest_of(repr(shown))}
