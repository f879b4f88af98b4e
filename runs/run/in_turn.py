"""Interleave two runs by repeat, so that load and time affect both sides of a release alike."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.db import transaction

from evalboard.core.errors import EvalboardError, InvalidInput
from evalboard.core.stats import order_in_turn
from runs.models import Priority, RunRecord
from runs.run.runs import Order, announce, find_order, store_order, store_repeats
from runs.work import queue

SIDES = ("baseline", "candidate")


def create_pair(
    *, baseline: Mapping[str, Any], candidate: Mapping[str, Any], user: Any = None
) -> tuple[RunRecord, RunRecord]:
    """Request two runs of one suite, whose repeats workers claim interleaved (`core.stats.order_in_turn`).

    They are the sides of a release, and have its priority unless they name another.

    baseline, candidate: the arguments of `create_run`, without the user. Raises what it raises, with the side before
    each field, and InvalidInput if the two name different suites; then neither is made.
    """
    orders = [_find_order(side, fields) for side, fields in zip(SIDES, (baseline, candidate), strict=True)]
    if orders[0].version != orders[1].version:
        fields = {"candidate.suite": f"Must be {orders[0].version}, as the baseline's is."}
        raise InvalidInput("The two runs cannot be compared.", fields=fields)
    with transaction.atomic():
        queue.refuse_beyond_limit(user, sum(order.n_responses for order in orders))
        ours, theirs = (store_order(order, user=user) for order in orders)
        store_in_turn([(run, range(1, order.repeats + 1)) for run, order in zip((ours, theirs), orders, strict=True)])
        for run, other in ((ours, theirs), (theirs, ours)):
            announce(run, f", in turn with run {other.pk}")
    return ours, theirs


def store_in_turn(
    planned: Sequence[tuple[RunRecord, Sequence[int]]], cases: Mapping[int, bytes] = MappingProxyType({})
) -> None:
    """Store repeats of several runs, by index, in the order in which they are to be claimed.

    cases: by run, the packed selection of cases to decode, if not all.
    """
    for side, nth in order_in_turn([len(indexes) for _, indexes in planned]):
        run, indexes = planned[side]
        store_repeats(run, [indexes[nth]], cases.get(run.pk))


def _find_order(side: str, fields: Mapping[str, Any]) -> Order:
    try:
        return find_order(**{"priority": Priority.RELEASE, **fields})
    except EvalboardError as problem:
        named = {f"{side}.{field}": words for field, words in problem.fields.items()}
        raise type(problem)(f"The {side}: {problem.detail}", fields=named) from problem
