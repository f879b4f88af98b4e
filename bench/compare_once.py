"""One figure of bench_compare, in a process of its own: python -m bench.compare_once WHAT BASELINE CANDIDATE."""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

ROUNDS = 20


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    import django

    django.setup()
    what, baseline, candidate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = {"first": first, "page": page, "shown": shown, "moved": moved}[what](baseline, candidate)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found | {"peak_mb": peak}))


def first(baseline: int, candidate: int) -> dict[str, Any]:
    from runs.compare import compare
    from runs.models import ComparisonRecord

    ComparisonRecord.objects.filter(baseline=baseline, candidate=candidate).delete()
    began = time.perf_counter()
    made = compare(baseline=baseline, candidate=candidate)
    seconds = time.perf_counter() - began
    assert made.status == ComparisonRecord.Status.FINISHED, made.error
    return {"seconds": seconds}


def page(baseline: int, candidate: int) -> dict[str, Any]:
    return {"page_seconds": _server_time(f"/compare/{baseline}/{candidate}/")}


def shown(baseline: int, candidate: int) -> dict[str, Any]:
    from runs.compare import compare

    again = _median(lambda: compare(baseline=baseline, candidate=candidate))
    address = f"/compare/{baseline}/{candidate}/"
    runs = f"?baseline={baseline}&candidate={candidate}"
    return {
        "again_seconds": again,
        "page_seconds": _server_time(address),
        "filtered_seconds": _server_time(f"{address}?cause=backend_changed&tag=tag-3&page=3"),
        "cases_seconds": _server_time(f"/api/v1/compare/cases/{runs}"),
    }


def moved(baseline: int, candidate: int) -> dict[str, Any]:
    from runs.compare import compare, work_on_comparison
    from runs.models import ComparisonRecord

    ComparisonRecord.objects.filter(baseline=baseline, candidate=candidate).delete()
    began = time.perf_counter()
    made = compare(baseline=baseline, candidate=candidate)
    counted = time.perf_counter()
    chunks = []
    while True:
        at = time.perf_counter()
        if not work_on_comparison():
            break
        chunks.append(time.perf_counter() - at)
    rest = time.perf_counter() - counted
    made.refresh_from_db()
    assert made.status == ComparisonRecord.Status.FINISHED, made.error
    return {
        "counts_seconds": counted - began,
        "rest_seconds": rest,
        "longest_seconds": max(chunks, default=0.0),
        "n_pairs": made.n_pairs,
        "page_seconds": _server_time(f"/compare/{baseline}/{candidate}/"),
    }


def _server_time(address: str) -> float:
    """From the request to the whole answer, every layer but the network's."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.get_or_create(username="bench")[0])
    answer = client.get(address)
    assert answer.status_code == 200, answer.content[:500]
    return _median(lambda: client.get(address))


def _median(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return median(times)


if __name__ == "__main__":
    main()
