"""docs/probes.md promises the rates that the tests hold, and says what was measured."""

from pathlib import Path

import pytest

from bench import measured_table, simulated_witnesses
from bench.simulated_probes import CLAIMS, Claim

PAGE = Path(__file__).resolve().parents[2] / "docs" / "probes.md"


@pytest.mark.parametrize(
    "claim", [*CLAIMS, *simulated_witnesses.CLAIMS], ids=lambda claim: f"{claim.situation}: {claim.says}"
)
def test_the_page_has_the_promise_and_what_was_measured(claim: Claim) -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = [measured_table.table_of(page, name=name) for name in ("measured", "measured witnesses")]
    rows = [line.split(" | ") for table in tables for line in table.splitlines()]
    [found] = [row for row in rows if row[0] == f"| {claim.situation}" and row[1] == claim.says]
    assert found[3:] == [f"{claim.n:,}", f"{claim.aim} |"]
    assert claim.is_kept(float(found[2].removesuffix(" %")) / 100)
