"""What the pages of a run and of its responses found, in words."""

from evalboard.contract.manifest import EngineSeats
from evalboard.contract.run import Run
from evalboard.contract.trace import TokenAtPosition
from evalboard.wording.messages import Messages, speak
from evalboard.wording.numbers import count_samples, fixed, listed
from frontend.shell.charts.axes import MIN_DRAWN
from frontend.shell.findings import Headline, split_claim
from frontend.templatetags.numbers import points, share, span
from runs.run import TraceWindow

DESERTED = "no_matching_worker"  # the code of the warning that no worker can take the run
SAID = Messages(
    "run_page",
    {
        ("status", "asserts"): {
            "queued": "Queued.",
            "first_free": "The first free worker of its pool takes it.",
            "engine_starts": "An engine starts.",
            "so_far": "So far; not a verdict.",
            "stored": "{n:,} of {n_total:response} were kept.",
        },
        ("score", "unknown"): {
            "incomplete": "{n:response} {n:is|are} missing, so no score is given.",
            "failed": "The run failed, so no score is given.",
            "cancelled": "The run was cancelled, so no score is given.",
            "no_range": "Finished, but every repeat has answers from a cache or a fallback, so there is no range.",
            "chosen": "Finished, without a score. This run decoded only chosen cases ({n:response}).",
            "unscored_texts": "Finished, without a score. The log gave none. Below it can be scored with a scorer.",
            "unscored_tokens": "Finished, without a score. The log gave none, and no scorer reads token ids.",
            "buckets": "Served by {n} buckets, so no score is given for the whole. Each bucket is scored by itself.",
            "not_scored": "No repeat is scored yet.",
            "scores_wait": "The scores are not there yet.",
            "left_unscored": "Finished, without a score. The scorer left every response of {n:repeat} without one.",
        },
        ("score", "asserts"): {
            "one_sample": "{score} points in one sample.",
            "one_repeat": "{score} points in one repeat. One repeat has no spread yet.",
            "all_equal": "Every one of {n} repeats scored {score} points.",
            "repeats": "{score} points over {n} repeats.",
        },
        ("case", "asserts"): {"worth": "One of {n:,} cases is {points:points} points."},
        ("repeats", "asserts"): {
            "left_out": "{n:answer} came from a cache or a fallback. The range leaves out {n_repeats:repeat} with "
            "{n:it|them}.",
            "targeted": "{n:repeat} of the {n_cases:case} most likely to flip: {n:it counts|they count} only in the "
            "verdict of a release.",
        },
        ("noise", "unknown"): {
            "one_seed": "All repeats of a case used one seed, so noise is unknown.",
            "too_few": "Not known from fewer than two repeats.",
            "few_samples": "Not known: {n:repeat} count as {samples}.",
            "second": "An independent second repeat measures how much scores move.",
            "is_one_sample": "Not known from one sample.",
        },
        ("noise", "asserts"): {
            "by_bucket": "Each bucket is measured separately.",
        },
        ("resolution", "asserts"): {
            "here": "{repeats:repeat} a side detect changes of {points:points} points or more on these {n:,} cases.",
            "elsewhere": "On new cases it is {points:points} points, if {churn} of them change.",
        },
        ("samples", "asserts"): {
            "right": "A sample is right {rate} times in 100.",
            "mean_only": "Samples have only a mean score.",
            "at_least_one": "Of {k} samples of a case, at least one is right {one} times in 100, and all of them "
            "{every}.",
        },
        ("flips", "allows"): {
            "likely": "{n:case} {n:is|are} likely to flip under other batching, by {n:its|their} margins.",
            "likely_none_did": "{n:case} {n:is|are} likely to flip. These repeats had the same batches, and none did.",
        },
        ("process", "asserts"): {
            "shared": "{repeats} shared engine process {id}.",
            "alone": "{repeats} came from engine process {id}.",
            "seats": "{got} of {wanted:seat} fit: after the weights, memory has room for {got} of {length:,} tokens at "
            "a time.",
        },
        ("margin", "asserts"): {
            "chart": "Margin between the two best tokens by position, log scale.",
            "thinned": "Each stem is the narrowest of its stretch.",
            "tied": "At {at} the two best tokens were exactly tied.",
            "closest": "The closest choice was at {at}, by {margin} nats.",
        },
        ("backends", "asserts"): {
            "answered": "{n:,} of {total:response} came from backend {backend}.",
            "runs_on": "It runs {own}; {first} runs {others}.",
            "same_label": "Both say {own}.",
            "differ": "{n:case} scored differently by backend.",
            "alone_unstable": "On {backend} alone {n:,} {n:is|are} unstable.",
            "no_engine": "Known once an engine has started.",
        },
        ("cases", "asserts"): {
            "unstable": "{n:case} changed {n:its|their} score between repeats.",
            "sampled": "{n:case} {n:differs|differ} between samples, as sampling does.",
        },
        ("cases", "unknown"): {
            "unstable_later": "Which cases are unstable is known once two repeats are complete.",
            "unstable_unknown": "Which cases are unstable is not known: {n:repeat} count as {samples}.",
        },
        ("course", "asserts"): {
            "imported": "Imported; nothing was decoded here.",
            "shards": "{n_finished:,} of {n:,} finished{took}{retried}.",
            "history": "{steps}.",
        },
        ("noise", "allows"): {
            "floor": "Noise floor {floor}{more}.",
            "floor_by_backend": "Per backend: noise floor {floors:list}.",
        },
        ("buckets", "asserts"): {"one_bucket": "{names}.", "several_buckets": "{n} buckets: {names}."},
        ("pins", "asserts"): {"pins": "{settings}."},
        ("scorers", "asserts"): {"scorer": "The suite’s own{more}."},
        ("repeats", "allows"): {
            "dots": "Each dot is a repeat.",
            "interval": "On these cases [{low:points}, {high:points}] at {level}.",
            "resolves": "{n:repeat} detect changes of {points:points} points or more.",
        },
        ("order", "asserts"): {
            "in_order": "{what}.",
            "pins_held": "pins held",
            "pins_held_in": "pins held in {which} engine processes",
        },
    },
)


def describe_run(run: Run) -> Headline:
    """Summarise a run's result, and the points of one case."""
    worth = SAID.write("worth", n=run.suite.n_cases, points=run.points_per_case)
    if run.status == "queued":
        is_deserted = any(warning.code == DESERTED for warning in run.warnings)  # the banner below says why
        waiting = "" if is_deserted else run.waiting or SAID.write("first_free")
        return Headline(SAID.write("queued"), f"{waiting} {worth}".lstrip())
    if run.status == "running" and run.waiting and run.progress.n_done == run.progress.n_total:
        is_deserted = any(warning.code == DESERTED for warning in run.warnings)
        return _with_more(SAID.write("scores_wait") if is_deserted else run.waiting, worth)
    if run.status == "running":
        is_starting = not (run.processes or run.progress.n_done or run.is_reported)
        return Headline(SAID.write("engine_starts" if is_starting else "so_far"), worth)
    if run.status in ("incomplete", "failed", "cancelled"):
        stored = SAID.write("stored", n=run.progress.n_done, n_total=run.progress.n_total)
        missing = sum(line.n_missing for line in run.every_repeat)
        return Headline(SAID.write(run.status, n=missing), stored)
    if any(run.n_left_out):
        repeats = sum(n > 0 for n in run.n_left_out)
        worth = f"{SAID.write('left_out', n=sum(run.n_left_out), n_repeats=repeats)} {worth}"
    if run.range_so_far is None:
        return _describe_unscored(run, worth)
    n, score = len(run.drawn_points), span(run.range_so_far)
    if run.draws.is_one:
        return Headline(SAID.write("one_sample", score=score), f"{SAID.write('one_seed')} {worth}")
    is_equal = run.range_so_far[0] == run.range_so_far[1]
    code = "one_repeat" if n == 1 else "all_equal" if is_equal else "repeats"
    return _with_more(SAID.write(code, n=n, score=score), worth)


def _describe_unscored(run: Run, worth: str) -> Headline:
    n = len(run.buckets)
    if n > 1:
        return split_claim(SAID.write("buckets", n=n))
    if run.n_left_out and all(run.n_left_out):
        return _with_more(SAID.write("no_range"), worth)
    if not run.n_repeats:
        return split_claim(SAID.write("chosen", n=run.progress.n_total))
    if own := next((line for line in run.scores if line.scorer.is_own), None):
        return _with_more(SAID.write("left_unscored", n=own.repeats.count(None)), worth)
    has_texts = run.source is None or run.source.has_texts
    return split_claim(SAID.write("unscored_texts" if has_texts else "unscored_tokens"))


def _with_more(text: str, more: str) -> Headline:
    finding = split_claim(text)
    return Headline(finding.claim, f"{finding.rest} {more}".lstrip())


def describe_few_draws(run: Run) -> str:
    """Say why the noise of the one bucket is not known."""
    if run.noise.n_draws is None:
        return SAID.write("too_few")
    return SAID.write("few_samples", n=run.n_repeats, samples=count_samples(run.noise.n_draws))


def describe_noise(run: Run) -> Headline:
    """Say what the repeats of the one bucket can detect; several buckets have a column each."""
    if len(run.buckets) > 1:
        return Headline(SAID.write("by_bucket"))
    if run.draws.is_one:
        return Headline(SAID.write("is_one_sample"), SAID.write("one_seed"))
    known = run.noise.resolution
    if known is None:
        return Headline(describe_few_draws(run), SAID.write("second"))
    claim = SAID.write("here", n=run.suite.n_cases, repeats=known.repeats, points=known.points)
    return Headline(claim, SAID.write("elsewhere", points=known.elsewhere_points, churn=share(known.churn)))


def describe_draws(run: Run) -> Headline | None:
    """Summarise metrics over samples; None if not sampled, or if only a mean is known."""
    if not any(bucket.metrics for bucket in run.buckets):
        return None
    if len(run.buckets) > 1:
        return Headline(SAID.write("by_bucket"))
    by_name = {metric.name: points(metric.points) for metric in run.buckets[0].metrics or ()}
    ks = [name.removeprefix("pass@") for name in by_name if name.startswith("pass@")]
    if not ks:
        return Headline(SAID.write("mean_only"))
    k = ks[-1]
    claim = SAID.write("right", rate=next(iter(by_name.values())))
    return Headline(claim, SAID.write("at_least_one", k=k, one=by_name[f"pass@{k}"], every=by_name[f"pass^{k}"]))


def describe_likely_flips(run: Run) -> str:
    """Say how many cases the first repeat's margins predict to flip, and how many did."""
    code = "likely_none_did" if run.noise.texts_alike == 1 else "likely"
    return SAID.write(code, n=run.noise.n_likely_to_flip or 0)


def describe_processes(run: Run) -> tuple[str, ...]:
    """Say which repeats shared an engine process, then which got too few seats."""
    repeats = [
        SAID.write("shared" if len(line.repeats) > 1 else "alone", repeats=_list_repeats(line.repeats), id=line.id)
        for line in run.processes
        if line.repeats
    ]
    shortages = [line.seats for line in run.processes if line.seats is not None and line.seats.got < line.seats.wanted]
    return (*repeats, *map(describe_shortage, dict.fromkeys(shortages)))


def describe_shortage(seats: EngineSeats) -> str:
    """Say why an engine process got fewer seats than its profile requests."""
    return SAID.write("seats", got=seats.got, wanted=seats.wanted, length=seats.length)


def _list_repeats(repeats: tuple[int, ...]) -> str:
    return f"Repeat{'' if len(repeats) == 1 else 's'} {listed([str(index) for index in repeats])}"


def describe_margins(window: TraceWindow, narrowest: TokenAtPosition) -> Headline:
    code = "tied" if narrowest.margin == 0 else "closest"
    claim = SAID.write(code, at=narrowest.position, margin=fixed(narrowest.margin or 0.0, 3))
    codes = () if window.n < MIN_DRAWN else ("chart", "thinned") if window.is_thinned else ("chart",)
    return Headline(claim, speak(SAID.claim(each) for each in codes))


def describe_targeted(run: Run) -> str:
    """Explain a run's targeted repeats; "" without any."""
    return SAID.write("targeted", n=len(run.targeted), n_cases=run.targeted[-1].n_cases) if run.targeted else ""
