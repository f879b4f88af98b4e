"""What the pages of a run and of its responses found, in words."""

from evalboard.contract.manifest import EngineSeats
from evalboard.contract.run import Run
from evalboard.contract.trace import TokenAtPosition
from evalboard.wording.numbers import counted, fixed, listed
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import points, share, span
from runs.run import TraceWindow

ONE_DRAW = "All repeats of a case used one seed, so noise is unknown."
DESERTED = "no_matching_worker"  # the code of the warning that no worker can take the run


def describe_run(run: Run) -> Headline:
    """Summarise a run's result, and the points of one case."""
    worth = f"One of {run.suite.n_cases:,} cases is {points(run.points_per_case)} points."
    if run.status == "queued":
        if any(warning.code == DESERTED for warning in run.warnings):
            return Headline("Waiting for a worker.", worth)  # the banner below says why
        waiting = run.waiting or "The first free worker of its pool takes it."
        return Headline("Queued.", f"{waiting} {worth}")
    if run.status == "running":
        is_starting = not (run.processes or run.progress.n_done or run.is_reported)
        return Headline("An engine starts." if is_starting else "So far; not a verdict.", worth)
    missing = sum(line.n_missing for line in run.every_repeat)
    if run.status in ("incomplete", "failed", "cancelled"):
        stored = f"{run.progress.n_done:,} of {run.progress.n_total:,} responses were kept."
        why = {
            "incomplete": f"{missing:,} response{' is' if missing == 1 else 's are'} missing, so no score is given.",
            "failed": "The run failed, so no score is given.",
            "cancelled": "The run was cancelled, so no score is given.",
        }
        return Headline(why[run.status], f"{stored} {worth}")
    if run.range_so_far is None:
        n = len(run.buckets)
        if n < 2 and any(run.n_left_out):
            return Headline("Finished, without a range.", f"No repeat is of draws alone. {_describe_left_out(run)}")
        if not run.n_repeats:
            n_cases = counted(run.progress.n_total, "chosen case")
            return Headline("Finished, of chosen cases alone.", f"It decoded {n_cases}, and no score is made of these.")
        if n < 2:
            has_texts = run.source is None or run.source.has_texts
            how = "Below it can be scored with a scorer." if has_texts else "Of token ids no scorer can make any."
            return Headline("Finished, without a score.", f"The log gave none. {how}")
        return Headline(
            f"Served by {n} buckets, so no score is given for the whole.", "Each bucket is scored by itself."
        )
    n_repeats = len(run.drawn_points)
    if any(run.n_left_out):
        worth = f"{_describe_left_out(run)} {worth}"
    if run.draws.is_one:
        return Headline(f"{span(run.range_so_far)} points in one draw.", f"{ONE_DRAW} {worth}")
    if n_repeats == 1:
        return Headline(
            f"{points(run.range_so_far[0])} points in one repeat.", f"One repeat has no spread yet. {worth}"
        )
    if run.range_so_far[0] == run.range_so_far[1]:
        return Headline(f"Every one of {n_repeats} repeats scored {points(run.range_so_far[0])} points.", worth)
    return Headline(f"{span(run.range_so_far)} points over {n_repeats} repeats.", worth)


def _describe_left_out(run: Run) -> str:
    n, n_repeats = sum(run.n_left_out), sum(n > 0 for n in run.n_left_out)
    one, their = "came out of a cache or after a fallback and", "holds it" if n == 1 else "holds them"
    answers = f"1 answer {one} is no draw" if n == 1 else f"{n:,} answers {one} are no draws"
    repeats = f"repeat that {their}" if n_repeats == 1 else f"{n_repeats} repeats that hold them"
    return f"{answers}; no range reads the {repeats}."


def describe_few_draws(run: Run) -> str:
    """Say why the noise of the one bucket is not known."""
    if run.noise.n_draws is None:
        return "Not known from fewer than two repeats."
    return f"Not known: {counted(run.n_repeats, 'repeat')} are {fixed(run.noise.n_draws, 1)} samples."


def describe_noise(run: Run) -> Headline:
    """Say what the repeats of the one bucket can detect; several buckets have a column each."""
    noise, n = run.noise, f"{run.suite.n_cases:,}"
    if len(run.buckets) > 1:
        return Headline("Each bucket is measured separately.", "Nothing is pooled.")
    if run.draws.is_one:
        return Headline("Not known from one draw.", ONE_DRAW)
    if noise.resolution is None:
        return Headline(describe_few_draws(run), "A whole second repeat of draws measures how much scores move.")
    resolution = noise.resolution
    claim = f"{resolution.repeats} repeats resolve a change of {points(resolution.points)} points on these {n} cases."
    other = points(resolution.elsewhere_points)
    elsewhere = f"{other} for other cases like these, if {share(resolution.churn)} of them change."
    return Headline(claim, elsewhere)


def describe_draws(run: Run) -> Headline | None:
    """Summarise metrics over samples; None if not sampled, or if only a mean is known."""
    if not any(bucket.metrics for bucket in run.buckets):
        return None
    if len(run.buckets) > 1:
        return Headline("Each bucket is measured separately.", "Samples of two buckets are never pooled.")
    by_name = {metric.name: metric.points for metric in run.buckets[0].metrics or ()}
    names = tuple(by_name)
    pooled = [name.removeprefix("pass@") for name in names if name.startswith("pass@")]
    claim = f"A sample is right {points(by_name[names[0]])} times in 100."
    if not pooled:
        return Headline("Samples have only a mean score.", "")
    k = pooled[-1]
    one, every = points(by_name[f"pass@{k}"]), points(by_name[f"pass^{k}"])
    return Headline(
        claim, f"Of {k} samples of a case, at least one is right {one} times in 100, and all of them {every}."
    )


def describe_likely_flips(run: Run) -> str:
    """Say how many cases the first repeat's margins predict to flip, and how many did."""
    n = run.noise.n_likely_to_flip or 0
    claim = f"{n:,} case{' is' if n == 1 else 's are'} likely to flip."
    if run.noise.texts_alike == 1:
        return f"{claim} These repeats had the same batches, and none did."
    return f"{claim} That is under other batching, by their margins."


def describe_processes(run: Run) -> tuple[str, ...]:
    """Say which repeats shared an engine process, then which got too few seats."""
    repeats = [
        f"{_list_repeats(line.repeats)} {'shared' if len(line.repeats) > 1 else 'came from'} engine process {line.id}."
        for line in run.processes
        if line.repeats
    ]
    shortages = [line.seats for line in run.processes if line.seats is not None and line.seats.got < line.seats.wanted]
    return (*repeats, *map(describe_shortage, dict.fromkeys(shortages)))


def describe_shortage(seats: EngineSeats) -> str:
    """Say why an engine process got fewer seats than its profile requests."""
    room = f"memory has room for {seats.got} of {seats.length:,} tokens at a time"
    return f"{seats.got} of {counted(seats.wanted, 'seat')} fit: after the weights, {room}."


def _list_repeats(repeats: tuple[int, ...]) -> str:
    return f"Repeat{'' if len(repeats) == 1 else 's'} {listed([str(index) for index in repeats])}"


def describe_margins(window: TraceWindow, narrowest: TokenAtPosition) -> Headline:
    shown = "Margin between the two best tokens by position, log scale."
    if window.is_thinned:
        shown += " Each stem is the narrowest of its stretch."
    if narrowest.margin == 0:
        return Headline(f"At {narrowest.position} the two best tokens were exactly tied.", shown)
    margin = fixed(narrowest.margin or 0.0, 3)
    return Headline(f"The closest choice was at {narrowest.position}, by {margin} nats.", shown)


def describe_targeted(run: Run) -> str:
    """Explain a run's targeted repeats; "" without any."""
    if not run.targeted:
        return ""
    repeats, cases = counted(len(run.targeted), "repeat"), counted(run.targeted[-1].n_cases, "case")
    they_count = "they count" if len(run.targeted) > 1 else "it counts"
    return f"{repeats} of the {cases} most likely to flip: {they_count} only in the verdict of a release."
