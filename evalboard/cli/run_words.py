"""How a run ended, as people read it."""

from evalboard.cli.answers import RunAnswer


def of_end(run: RunAnswer) -> str:
    """A run's end in a sentence."""
    n_repeats = len(run.json["repeats"])
    repeats = "1 repeat" if n_repeats == 1 else f"{n_repeats} repeats"
    if run.sampled:
        repeats = f"{repeats}, {run.sampled}"
    if run.range is not None:
        return f"Run {run.id} finished: {span(run.range)} over {repeats}."
    if run.status == "finished":
        n_buckets = run.json["n_buckets"]
        if n_buckets < 2:
            return f"Run {run.id} finished over {repeats}, with no score."
        return f"Run {run.id} finished in {n_buckets} buckets, so no score is given for the whole."
    return f"Run {run.id} is {run.status}: {run.n_done} of {run.n_total} responses, no score."


def span(points: tuple[float, float]) -> str:
    """A range in words, "80.6 to 81.3 points"; one number where every repeat scored the same."""
    low, high = points
    return f"{low:.1f} points" if low == high else f"{low:.1f} to {high:.1f} points"
