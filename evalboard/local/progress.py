"""Print the progress of the sample runs on a terminal, read over REST like any client."""

from typing import Any

import httpx

from evalboard.local.report import Report
from evalboard.wording.numbers import score_range

ENDED = {"finished", "incomplete", "failed", "cancelled"}
LINES_PER_RUN = 10


class ProgressReporter:
    """Follows the runs `run_ids` and reports each tenth of their responses, and their ends."""

    def __init__(self, report: Report, *, address: str, token: str, run_ids: list[Any]) -> None:
        self._report = report
        self._client = httpx.Client(
            base_url=f"{address}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=10, trust_env=False
        )
        self._waiting = {str(run): -1 for run in run_ids}  # the last tenth reported
        self._has_complained = False

    def close(self) -> None:
        self._client.close()

    @property
    def is_over(self) -> bool:
        return not self._waiting

    def look(self) -> None:
        """Read the state of every run that has not ended; skip a page that does not answer now."""
        for run_id in list(self._waiting):
            try:
                answer = self._client.get(f"/runs/{run_id}/")
            except httpx.TransportError:
                return
            if answer.status_code == httpx.codes.NOT_FOUND:  # deleted meanwhile
                del self._waiting[run_id]
            elif answer.is_success:
                self._tell(run_id, answer.json())
            elif not self._has_complained:
                self._has_complained = True
                self._report.say(f"          run {run_id}: the page answers {answer.status_code}; web.log says why")

    def _tell(self, run_id: str, run: dict[str, Any]) -> None:
        done, total = run["progress"]["n_done"], run["progress"]["n_total"]
        name = f"run {run_id} ({run['suite']['slug']} on {run['endpoint']})"
        facts = {"run": run_id, "status": run["status"], "n_done": done, "n_total": total, "range": run["range"]}
        if run["status"] in ENDED:
            del self._waiting[run_id]
            self._report.say(f"          {name}: {_result(run)}", **facts)
            return
        tenth = done * LINES_PER_RUN // total if total else 0
        if run["status"] == "running" and tenth > self._waiting[run_id]:
            self._waiting[run_id] = tenth
            self._report.say(f"          {name}: {done} of {total} responses", **facts)


def _result(run: dict[str, Any]) -> str:
    if run["range"] is None:
        return f"{run['status']}, without a range; {run['url']} says why"
    low, high = run["range"]
    spread = f"{score_range(low, high)}{' in every repeat' if low == high else ''}"
    return f"{run['status']}, {spread}"
