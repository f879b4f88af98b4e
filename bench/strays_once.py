"""The figures of bench_strays for one run, in a process of its own: python -m bench.strays_once RUN."""

import json
import os
import resource
import sys
import time
from itertools import pairwise
from statistics import median


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.test import Client

    from runs.models import RunRecord
    from runs.work import look_through, work_on_strays

    run = RunRecord.objects.select_related("profile").get(pk=int(sys.argv[1]))
    began = time.perf_counter()
    look_through(run)
    run.save(update_fields=["strays", "strays_so_far", "unsteady"])
    ended = time.perf_counter()
    chunks = [ended]
    while work_on_strays():
        chunks.append(time.perf_counter())
    run.refresh_from_db()
    assert [strays["n_unread"] for strays in run.strays] == [0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.get_or_create(username="bench")[0])
    gets = []
    for _ in range(5):
        at = time.perf_counter()
        assert client.get(f"/api/v1/runs/{run.pk}/").status_code == 200
        gets.append(1000 * (time.perf_counter() - at))
    lasted = [later - earlier for earlier, later in pairwise(chunks)]
    found = {
        "end_seconds": ended - began,
        "rest_seconds": chunks[-1] - ended,
        "longest_seconds": max(lasted, default=0),
    }
    found |= {"n_listed": run.strays[0]["n_strays"], "peak_mb": peak, "get_ms": median(gets)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
