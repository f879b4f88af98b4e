"""Many traces as columns: each is the one that was put in, wherever it stands."""

from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.trace.trace import NO_TOKEN, TokenTrace
from evalboard.core.trace.trace_columns import join_traces
from tests import make
from tests.core.test_codec import any_traces, bits


@given(st.lists(any_traces(), max_size=5), st.data())
def test_each_trace_comes_back_from_the_columns(traces: list[TokenTrace], data: st.DataObject) -> None:
    columns = join_traces(traces)
    assert len(columns) == len(traces)
    assert [bits(columns.trace(index))[:4] for index in range(len(traces))] == [bits(trace)[:4] for trace in traces]
    if traces:
        chosen = data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=6))
        taken = columns.take(chosen)
        assert [taken.trace(at).digest for at in range(len(chosen))] == [traces[index].digest for index in chosen]


def test_past_its_own_alternatives_a_trace_lists_no_token() -> None:
    columns = join_traces([make.trace("ab", k=1), make.trace("c", k=3)])
    assert columns.alternative_ids[:2, 1:].tolist() == [[NO_TOKEN] * 2] * 2
    assert columns.alternative_logprobs[:2, 1:].tolist() != columns.alternative_logprobs[:2, 1:].tolist()  # NaN
    assert columns.widths.tolist() == [1, 3]
