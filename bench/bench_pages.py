"""Pages and answers of REST, by the processor time of the server: the same for 1,000 cases as for 100,000.

Each is asked for through every layer but the network's, once to compute what is kept, then ROUNDS times. PostgreSQL's
own time is not in it.
"""

import time
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from bench import api_data, pages_data
from bench.pages_data import N_REPEATS
from bench.row import Row, median_row

SIZES = (1_000, 10_000, 100_000)
N_RUNS = 10_000  # small ones, for what lists runs
ROUNDS = 15


def measure() -> list[Row]:
    template = pages_data.make_template()
    judged = {n_cases: pages_data.make_judged(template, n_cases) for n_cases in SIZES}
    api_data.make_runs(N_RUNS)
    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.create_superuser("bench-pages"))
    rows: list[Row] = []
    for n_cases, made in judged.items():
        run, release, case = made.candidate, made.release, pages_data.name_case(n_cases // 2)
        of_size = {
            "run page": (f"/runs/{run}/", "at most 100"),
            "GET /runs/{id}/": (f"/api/v1/runs/{run}/", "at most 30"),
            "GET /runs/{id}/cases/": (f"/api/v1/runs/{run}/cases/", ""),
            "suite page": (f"/suites/{made.suite}/", "at most 80"),
            "release page": (f"/releases/{release}/", "at most 80"),
            "GET /releases/{id}/": (f"/api/v1/releases/{release}/", ""),
            "response page": (f"/runs/{run}/repeats/1/cases/{case}/", "at most 20"),
            "trace page": (f"/compare/{made.baseline}/{run}/cases/{case}/?repeat=1,1", "at most 30"),
            "GET /runs/{id}/responses/": (f"/api/v1/runs/{run}/responses/", ""),
        }
        size = f"{n_cases:,} cases × {N_REPEATS}"
        for what, (address, aim) in of_size.items():
            rows += _rows(client, f"{what}, {size}", address, aim)
    case = f"/suites/{api_data.SUITE}/cases/case-1/"
    of_runs = (("board", "/", "at most 60"), ("list of runs", "/runs/", ""), ("case page", case, "at most 80"))
    for what, address, aim in of_runs:
        rows += _rows(client, f"{what}, {N_RUNS:,} runs", address, aim)
    return rows


def _rows(client: Client, what: str, address: str, aim: str) -> list[Row]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content[:500]
    n_statements = 0

    def count(execute: Any, *given: Any) -> Any:
        nonlocal n_statements
        n_statements += 1
        return execute(*given)

    with connection.execute_wrapper(count):
        client.get(address)
    readings = []
    for _ in range(ROUNDS):
        began = time.process_time()
        client.get(address)
        readings.append(1000 * (time.process_time() - began))
    return [median_row(what, readings, "ms", aim=aim), Row(f"{what}: statements", n_statements, "queries")]
