"""The board: what needs somebody."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.wording.numbers import counted
from frontend.endpoints.words import describe_desertion
from frontend.shell.findings import Finding
from runs import board as board_slice
from runs.access import READ, requires
from runs.board import Board


@requires(READ)
@require_safe
def board(request: HttpRequest) -> HttpResponse:
    board = board_slice.board()
    page = {
        "board": board,
        "finding": describe_board(board),
        "deserted": tuple((pool, describe_desertion(pool)) for pool in board.deserted_pools),
    }
    return render(request, "board/page.html", page)


def describe_board(board: Board) -> Finding:
    """Say what needs somebody, each kind counted, and how much is under way."""
    n_deserted = len(board.deserted_pools)
    kinds = (
        (len(board.open_releases), "verdict is open", "verdicts are open"),
        (len(board.expired_baselines), "baseline has expired", "baselines have expired"),
        (len(board.attention), "run needs somebody", "runs need somebody"),
        (len(board.probes), "probe needs somebody", "probes need somebody"),
        (len(board.failing_schedules), "schedule is refused", "schedules are refused"),
        (n_deserted, "pool has work and nobody to do it", "pools have work and nobody to do it"),
        (len(board.silent_workers), "worker fell silent", "workers fell silent"),
        (len(board.resting_workers), "worker rests", "workers rest"),
    )
    parts = [f"{n} {one if n == 1 else many}" for n, one, many in kinds if n]
    n_open = len(board.in_progress)
    progress = f"{counted(n_open, 'run')} in progress." if n_open else "No run is in progress."
    return Finding(f"{', '.join(parts)}." if parts else "Nothing needs you.", progress)
