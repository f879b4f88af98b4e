"""How a run ended, as people read it."""

from evalboard.cli.answers import RunAnswer


def of_end(run: RunAnswer) -> str:
    """A run's end in a sentence."""
    n_repeats = len(run.json["repeats"])
    n_left_out = sum(line["n_left_out"] > 0 for line in run.json["repeats"])
    repeats = _repeats(n_repeats - n_left_out) if run.range is not None else _repeats(n_repeats)
    if run.sampled:
        repeats = f"{repeats}, {run.sampled}"
    if run.range is not None:
        aside = f"; {_repeats(n_left_out)} with answers of a cache or a fallback left out" if n_left_out else ""
        return f"Run {run.id} finished: {span(run.range)} over {repeats}{aside}."
    if run.status == "finished":
        n_buckets = run.json["n_buckets"]
        if n_buckets < 2 and n_left_out:
            return f"Run {run.id} finished: every repeat has answers of a cache or a fallback, so no range is given."
        if n_buckets < 2:
            return f"Run {run.id} finished over {repeats}, with no score."
        return f"Run {run.id} finished in {n_buckets} buckets, so no score is given for the whole."
    return f"Run {run.id} is {run.status}: {run.n_done} of {run.n_total} responses, no score."


def _repeats(n: int) -> str:
    return "1 repeat" if n == 1 else f"{n} repeats"


def span(points: tuple[float, float]) -> str:
    """A range in words, "80.6 to 81.3 points"; one number where every repeat scored the same."""
    low, high = points
    return f"{low:.1f} points" if low == high else f"{low:.1f} to {high:.1f} points"
