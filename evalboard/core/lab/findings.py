"""Choose the finding of each table row, the control first: if it moved, no other source can be blamed."""

from collections.abc import Sequence

from evalboard.contract.lab_kinds import Source, SourceFinding, State
from evalboard.core.lab.figures import Figures


def judge_rows(rows: Sequence[tuple[Source, Figures | None]]) -> tuple[SourceFinding, ...]:
    """Return a finding for each row, None being one without figures yet. The control's is among them."""
    controls = [figures for source, figures in rows if source is Source.CONTROL]
    control = _judge_control(controls[0] if controls else None)
    return tuple(
        control if source is Source.CONTROL else _judge_source(figures, control.state) for source, figures in rows
    )


def _judge_control(figures: Figures | None) -> SourceFinding:
    if figures is None:
        return SourceFinding(State.NOT_MEASURED)
    if figures.spread is None or figures.spread.n < 2:
        return SourceFinding(State.NOT_SCORED)
    if figures.n_flipped or figures.spread.range:
        return SourceFinding(State.MOVED, figures.spread.range / 2, figures.at_most)
    state = State.HOLDS if figures.n_same == figures.n_runs else State.HOLDS_IN_ANSWERS
    return SourceFinding(state, 0.0, figures.at_most)


def _judge_source(figures: Figures | None, control: State) -> SourceFinding:
    if figures is None or control is State.NOT_MEASURED:
        return SourceFinding(State.NOT_MEASURED)
    if figures.reach is None or control is State.NOT_SCORED:
        return SourceFinding(State.NOT_SCORED)
    moved = (figures.reach, figures.at_most)
    if control is State.MOVED:
        return SourceFinding(State.NOT_BLAMED, *moved)
    if figures.reach:
        return SourceFinding(State.SOURCE, *moved)
    if figures.n_flipped:
        return SourceFinding(State.ANSWERS_ONLY, *moved)
    is_same = figures.n_same is None or figures.n_same == figures.n_runs or control is State.HOLDS_IN_ANSWERS
    return SourceFinding(State.NONE_SEEN if is_same else State.BITS_ONLY, *moved)
