"""What an engine would do for runs that a command has asked for: stored rows, from a thread of the test."""

import threading
from collections.abc import Sequence

from django.db import connections

from runs.models import BucketRecord, RepeatRecord, RunRecord
from runs.run import cancel_run
from tests import build

LOOK_SECONDS = 0.1


class Decoding:
    """Answers every run that is queued with `texts`, the same in each repeat, by one process of `bucket`.

    With `cancels` it cancels them instead.
    """

    def __init__(
        self, texts: Sequence[str | None], bucket: BucketRecord | None = None, *, cancels: bool = False
    ) -> None:
        self._texts = texts
        self._bucket = bucket
        self._cancels = cancels
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> "Decoding":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        try:
            while not self._over.wait(LOOK_SECONDS):
                for run in RunRecord.objects.filter(status=RunRecord.Status.QUEUED):
                    self._answer(run)
        finally:
            connections.close_all()

    def _answer(self, run: RunRecord) -> None:
        if self._cancels:
            cancel_run(run_id=run.pk)
            return
        served_by = build.process(self._bucket)
        for repeat in RepeatRecord.objects.filter(run=run).order_by("index").values_list("index", flat=True):
            build.decode(run, repeat, self._texts, by=served_by)
