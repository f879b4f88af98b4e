"""What to look at in a run, worst first: warnings, and lists of cases that its numbers suggest."""

from collections.abc import Iterable, Iterator

from django.urls import reverse

from evalboard.contract.run import Run
from evalboard.wording.numbers import capital, count_samples, listed
from evalboard.wording.run import without_odd_ones
from frontend.runs.charts import BackendPart
from frontend.runs.words import SAID, describe_likely_flips
from frontend.shell.findings import Item
from frontend.templatetags.numbers import share

SAID_ELSEWHERE = frozenset({"coarse_suite", "several_buckets"})  # in the result; in the banner of several buckets


def list_items(
    run: Run, backends: tuple[BackendPart, ...], n_differ: int, added: Iterable[Item] = ()
) -> tuple[Item, ...]:
    """Return what needs looking at.

    n_differ: cases that backends scored differently. added: by wings.
    """
    warnings = [note for note in run.warnings if note.code not in SAID_ELSEWHERE]
    return (
        *added,
        *(
            Item("warning", note.text, code=note.code, link=_link(run, note.code))
            for note in warnings
            if note.severity == "warning"
        ),
        *_list_backends(run, backends, n_differ),
        *_list_cases(run),
        *(Item("info", "", note.text, code=note.code) for note in warnings if note.severity == "info"),
        *_list_what_holds(run),
    )


def _link(run: Run, code: str) -> tuple[str, str] | None:
    return {
        "two_computations": ("These responses", "#strays"),
        "endpoint_rests": ("See the endpoint", reverse("endpoint", args=[run.endpoint])),
        "no_matching_worker": ("Workers", reverse("workers")),
        "pins_broken": ("Which", "#pins"),
        "uncertified": ("Probes", f"{reverse('probes')}?endpoint={run.endpoint}&kind=determinism#new"),
        "unsteady": ("List", "?only=unstable#cases"),
    }.get(code)


def _list_backends(run: Run, backends: tuple[BackendPart, ...], n_differ: int) -> Iterator[Item]:
    for part in backends[1:]:
        first = backends[0].bucket.fingerprint.label
        own = part.bucket.fingerprint.label
        n, total = part.bucket.n_responses, run.progress.n_done
        claim = SAID.write("answered", n=n, total=total, backend=part.letter)
        code = "runs_on" if own != first else "same_label"
        runs_on = SAID.write(code, own=own, first=backends[0].letter, others=first)
        runs_on = "" if own == part.letter else runs_on  # the name of the server is all that is known of it
        yield Item(
            "warning", claim, runs_on, link=(f"Cases that {part.letter} answered", f"?bucket={part.bucket.id}#cases")
        )
    if n_differ:
        n_unstable, backend = backends[0].bucket.noise_so_far.n_unstable, backends[0].letter
        alone = "" if n_unstable is None else SAID.write("alone_unstable", n=n_unstable, backend=backend)
        yield Item("warning", SAID.write("differ", n=n_differ), alone, link=("List", "?only=differ#cases"))


def _list_cases(run: Run) -> Iterator[Item]:
    noise = run.noise
    if noise.n_unstable is None and run.n_buckets == 1 and not run.draws.is_one:
        code = "unstable_later" if noise.n_draws is None else "unstable_unknown"
        samples = count_samples(noise.n_draws or 1.0)
        yield Item("info", "", SAID.write(code, n=run.n_repeats, samples=samples))
    if noise.n_unstable and not run.draws.is_one:
        link = ("List", "?only=unstable#cases")
        if run.draws.is_sampled:
            yield Item("info", "", SAID.write("sampled", n=noise.n_unstable), link=link)
        else:
            yield Item("warning", SAID.write("unstable", n=noise.n_unstable), link=link)
    if noise.n_likely_to_flip:
        link = ("List", "?only=likely#cases")
        yield Item("info", "", describe_likely_flips(run), link=link)


def _list_what_holds(run: Run) -> Iterator[Item]:
    """Yield what is in order: pins, one bucket, every response."""
    parts = []
    if run.pins.held and run.pins.every:
        n = len(run.processes)
        parts.append(SAID.write("pins_held" if n < 2 else "pins_held_in", which="both" if n == 2 else f"all {n}"))
    if run.n_buckets == 1:
        parts.append("one bucket")
    if run.progress.n_done == run.progress.n_total:
        parts.append(f"{run.progress.n_done:,} of {run.progress.n_total:,} responses")
    if run.noise.n_unstable == 0 and not run.draws.is_one and run.noise.n_repeats > 1:
        parts.append("no case changed its score between repeats")
    if parts:
        yield Item("fine", "", SAID.write("in_order", what=capital(listed(parts))))


def describe_banner(backends: tuple[BackendPart, ...]) -> str:
    """Return the banner of a run that several backends answered."""
    first, others = backends[0], backends[1:]
    odd = [(share(part.bucket.share), f"backend {part.letter}") for part in others]
    return without_odd_ones(first.bucket.score, odd)
