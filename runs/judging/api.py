"""How judges scored runs."""

from evalboard.contract.base import Page
from evalboard.contract.judge import Judging
from runs.api.resource import get, serve
from runs.judging.read import judgings_of


def _show(run_id: int) -> Page[Judging]:
    """Return all of a run's judgings, which are few."""
    return Page[Judging](next=None, previous=None, results=judgings_of(run_id))


judging_list = serve(
    get("judgings", "How judges scored a run: their runs, their noise, and whether they moved", Page[Judging], _show)
)
