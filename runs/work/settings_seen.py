"""What the calls and the answers of a run that has ended show of its settings."""

from collections import Counter
from collections.abc import Sequence

from django.db.models import Count, F, Func, TextField

from evalboard.contract.facts import SettingsSeen
from evalboard.core.compare import choose_step, count_not_greedy
from evalboard.core.errors import TraceDamaged
from evalboard.core.profile import WHERE_HONOURED
from evalboard.core.stats import is_left_out
from evalboard.core.trace import TraceColumns
from runs.catalogue import read_newest_check
from runs.models import ResponseRecord, RunRecord
from runs.pairs import pair_facts
from runs.store import stored_traces


def see_settings(run: RunRecord) -> SettingsSeen:
    """Return what a run's answers show, and for an external server its calls and newest check.

    Reads its profile.
    """
    there = ResponseRecord.objects.filter(repeat__run=run, error_code="").order_by()
    n_answers = there.count()
    n_listed, n_not_greedy = _count_not_greedy(run, n_answers)
    names = Func(F("call__left_out"), function="jsonb_array_elements_text", output_field=TextField())
    left_out = there.filter(call__left_out__isnull=False).annotate(setting=names).values_list("setting")
    checked = read_newest_check(run.endpoint_id) if run.is_reported else {}
    if run.profile.settings["sampling"].get("logprobs") == WHERE_HONOURED:  # as the check before the run saw them
        before = read_newest_check(run.endpoint_id, before=run.created_at).get("logprobs")
        checked = {name: check for name, check in checked.items() if name != "logprobs"}
        checked |= {} if before is None else {"logprobs": before}
    return SettingsSeen(
        n_answers=n_answers,
        n_left_out=dict(left_out.annotate(n=Count("pk"))) if run.is_reported else {},
        checked=checked,
        n_listed=n_listed,
        n_not_greedy=n_not_greedy,
    )


def _count_not_greedy(run: RunRecord, n_answers: int) -> tuple[int, int]:
    """Return (answers with alternatives, those of them with a token that is not the most likely).

    0 if decoding was not greedy, or if more than the logits decides: penalties, a grammar, a forced call. Equal traces
    are read once.
    """
    if not pair_facts.is_greedy_wanted(run):
        return 0, 0
    step = choose_step(n_answers)
    spread = ResponseRecord.objects.filter(repeat__run=run, error_code="").exclude(trace_block=None).order_by()
    if step > 1:
        spread = spread.alias(place=F("case_index") % step).filter(place=0)
    names = ("trace_digest", "trace_block", "trace_slot", "marks")
    counts: Counter[bytes] = Counter()
    places: dict[bytes, tuple[int, int]] = {}
    for digest, block, slot, marks in spread.values_list(*names):
        if not is_left_out(marks):
            counts[bytes(digest)] += 1
            places[bytes(digest)] = (block, slot)

    def read(digests: Sequence[bytes]) -> TraceColumns | None:
        try:
            return stored_traces.read_columns(places[digest] for digest in digests)
        except TraceDamaged:  # the run ends all the same
            return None

    return count_not_greedy(counts, read, is_decimal=run.is_reported)
