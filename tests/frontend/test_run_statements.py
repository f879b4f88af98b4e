"""What the page of a run asks of the database: few statements, however much of it there is, and no packed column.

Also how many modules of the product it takes to draw the page.
"""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalboard.contract.run import Repeat
from runs.models import RunRecord, Shard
from runs.run import figures, live_report, read_shards
from tests import build

pytestmark = pytest.mark.django_db

# Two only of several buckets: their groups of cases, and what each served. One answers what every act depends on.
MAX_STATEMENTS = 29
MAX_MODULES = 81  # a decision says why it rises
ROOT = Path(__file__).resolve().parents[2]
PRODUCT = tuple(f"{ROOT / package}/" for package in ("evalboard", "runs", "frontend", "worker"))
ANSWERS = ("blue", "red", "red", "blue", "red", "red", "blue", "red", "red", "blue")
PACKED = (
    '"runs_casecolumns"."text_digests"',
    '"runs_casecolumns"."buckets"',
    '"runs_repeatscore"."scores"',
    '"runs_repeatscore"."reasons"',
)


def statements(client: Any, run: RunRecord) -> list[str]:
    client.get(f"/runs/{run.pk}/")  # what is asked once in a process, or of a session, is not the page's
    with CaptureQueriesContext(connection) as queries:
        assert client.get(f"/runs/{run.pk}/").status_code == 200
    return [query["sql"] for query in queries.captured_queries]


def run_of(*, repeats: int, buckets: int) -> RunRecord:
    """Each bucket serves one case of every repeat, the first one the rest."""
    processes = [build.process(build.bucket(f"float{number}")) for number in range(buckets)]
    by = [processes[place] if place < buckets else processes[0] for place in range(len(ANSWERS))]
    version = build.suite("many", [f"case {number}" for number in range(len(ANSWERS))])
    run = build.run(version, repeats=repeats)
    for index in range(1, repeats + 1):
        build.decode(run, index, ANSWERS, by=by)
    return run


@pytest.mark.nightly
def test_a_page_asks_as_much_for_ten_repeats_as_for_one(viewer: Any) -> None:
    one = statements(viewer, run_of(repeats=1, buckets=1))
    many = statements(viewer, run_of(repeats=10, buckets=1))
    assert len(many) <= len(one) <= MAX_STATEMENTS


@pytest.mark.nightly
def test_a_page_asks_as_much_for_ten_buckets_as_for_two(viewer: Any) -> None:
    """Who answered which case is read from the packed columns, whatever the number of buckets."""
    two = statements(viewer, run_of(repeats=2, buckets=2))
    ten = statements(viewer, run_of(repeats=10, buckets=10))
    assert len(ten) <= len(two) <= MAX_STATEMENTS


def test_packed_columns_are_left_in_the_database(viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(repeats=3, buckets=1)
    statements(viewer, run)  # computes what is kept
    monkeypatch.delattr(figures, "read_columns")
    asked = statements(viewer, run)
    assert [column for column in PACKED if any(column in sql for sql in asked)] == []


@pytest.mark.nightly
def test_many_shards_are_drawn_together(viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the same number of statements; each line stands for as many shards as it says."""
    run = run_of(repeats=2, buckets=1)
    apart = statements(viewer, run)
    split(run)
    monkeypatch.setattr(read_shards, "SHARDS_DRAWN", 4)
    monkeypatch.setattr(read_shards, "LINES_DRAWN", 2)
    assert len(statements(viewer, run)) == len(apart)
    drawn = [[(line.first, line.last, line.n_shards, line.n_done) for line in of.shards] for of in repeats_of(run)]
    assert drawn == [[(0, 4, 5, 5), (5, 9, 5, 5)]] * 2
    Shard.objects.filter(repeat__run=run, repeat__index=2, first=7).update(status=Shard.Status.FAILED)
    assert [[line.status for line in of.shards] for of in repeats_of(run)] == [["finished"] * 2, ["finished", "failed"]]


@pytest.mark.nightly
def test_a_page_enters_few_modules(viewer: Any) -> None:
    """A run of two buckets that nobody has looked at yet. `tools/house.py --page` reads what this prints."""
    statements(viewer, run_of(repeats=1, buckets=1))  # imports what pages need
    address = f"/runs/{run_of(repeats=2, buckets=2).pk}/"
    files = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        viewer.get(address)
    finally:
        sys.setprofile(None)
    modules = sorted(str(Path(name).relative_to(ROOT)) for name in files if name.startswith(PRODUCT))
    print("", *(f"enters {name}" for name in modules), sep="\n")
    assert "frontend/runs/run_views.py" in modules
    assert len(modules) <= MAX_MODULES


def split(run: RunRecord) -> None:
    """Store its shards anew, one for each case."""
    for repeat in run.repeats.all():
        repeat.shards.all().delete()
        Shard.objects.bulk_create(
            Shard(repeat=repeat, first=n, last=n, n_done=1, attempt=1, status=Shard.Status.FINISHED)
            for n in range(len(ANSWERS))
        )


def repeats_of(run: RunRecord) -> tuple[Repeat, ...]:
    return live_report(run.pk).repeats
