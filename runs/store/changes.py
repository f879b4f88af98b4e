"""Notify followers when a run's results change: its score, its validity, its model's name.

Verdicts depend on runs, but runs do not know verdicts: `runs.apps` registers the followers when Django starts.
"""

from collections.abc import Callable
from functools import partial

from django.db import transaction

from runs.store.statements import may_decide

Follower = Callable[[int], None]

_followers: list[Follower] = []


def follow(follower: Follower) -> None:
    """Call `follower` with the id of each run that changes, after the transaction that changed it."""
    _followers.append(follower)


def follow_where_allowed(follower: Follower) -> None:
    """Do the same in processes that may decide; elsewhere the scheduler's next sweep does it."""

    def called(run_id: int) -> None:
        if may_decide():
            follower(run_id)

    follow(called)


def run_changed(*, run_id: int) -> None:
    """Tell the followers once this transaction is done; whatever happens to them then never fails it."""
    for follower in _followers:
        transaction.on_commit(partial(follower, run_id), robust=True)
