"""`manage.py verify_stored`: check digests, traces, seals, sign-offs and the audit trail."""

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace import read_block
from evalboard.wording.numbers import counted
from runs.audit import check_trail
from runs.exports import sign_off_lines
from runs.models import RepeatRecord, TraceBlock, Verdict
from runs.sign_off_chain import has_sealed_document, is_sealed
from runs.store import stored_columns

AT_ONCE = 100  # repeats, or blocks of 32 traces


class Command(BaseCommand):
    help = "Check every digest, trace, seal, sign-off and audit line of the database; status 1 where one is wrong."

    def handle(self, *args: Any, **options: Any) -> None:
        n_wrong = 0
        for problem in _problems():
            n_wrong += 1
            self.stderr.write(problem)
        if n_wrong:
            raise CommandError(f"{counted(n_wrong, 'problem')}, see above.")
        n = {model: model.objects.count() for model in (RepeatRecord, TraceBlock, Verdict)}
        self.stdout.write(
            f"{counted(n[RepeatRecord], 'repeat')}, {counted(n[TraceBlock], 'block')} of traces, "
            f"{counted(n[Verdict], 'verdict')}, every sign-off and every audit line are as they were stored."
        )


def _problems() -> Iterator[str]:
    """Yield what is wrong: packed columns and scores, traces, verdicts, sign-offs, audit lines."""
    repeats = list(RepeatRecord.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(repeats), AT_ONCE):
        for pk in stored_columns.find_changed(repeats[start : start + AT_ONCE]):
            yield f"Repeat {pk}: its columns or scores are not those of its digests."
    for block in TraceBlock.objects.order_by("pk").iterator(chunk_size=AT_ONCE):
        try:
            read_block(bytes(block.data))
        except TraceDamaged as damaged:
            yield f"Block {block.pk} of traces of run {block.run_id}: {damaged}"
    for verdict in Verdict.objects.select_related("policy").order_by("pk").iterator(chunk_size=AT_ONCE):
        if not (is_sealed(verdict) and has_sealed_document(verdict)):
            yield f"Verdict {verdict.pk} of release {verdict.release_id}: its seal is wrong."
    for line in map(json.loads, sign_off_lines()):
        if not line["is_intact"]:
            yield f"Sign-off {line['id']} of release {line['release']}: {line['problem']}"
    if problem := check_trail(is_restored=True).problem:
        yield f"The audit trail: {problem}"
