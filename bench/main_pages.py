"""One page of each main kind with something on it: the sample that comes with `make up`, a probe and an experiment."""

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.urls import reverse

from frontend.board import tour
from runs.catalogue import store_default_policies, store_default_profiles
from runs.lab import plan_experiment, start_experiment
from runs.models import ExperimentRecord, ProbeRecord, RunRecord
from runs.sweep import reconcile
from runs.tour import load_tour, tour_of
from tests import build, probes

N_RUNS = 10  # of each source of the experiment
SMALL = {"prompts": 2, "calls_per_group": 4}


@dataclass(frozen=True, slots=True)
class MainPage:
    """What a page is, its address, and whether a chart of Plotly is drawn on it."""

    what: str
    address: str
    has_plot: bool = False


def make_main_pages() -> tuple[MainPage, ...]:
    """Store what the pages show and return them in the order in which readers come to them."""
    person = get_user_model().objects.create_user(username="newcomer")
    store_default_profiles()
    store_default_policies()
    load_tour(user=person)
    sample = tour_of(person)
    if sample is None:
        raise LookupError("The sample of the tour is not whole.")
    run, compared, token, release = (stop.url.partition("?tour")[0] for stop in tour.stops(sample))
    served = RunRecord.objects.get(pk=sample.release.baseline.run)
    case = sample.case.outcome.case
    return (
        MainPage("board", reverse("board")),
        MainPage("run page", run),
        MainPage("suite page", reverse("suite", args=[sample.release.suites[0]]), has_plot=True),
        MainPage("release page", release),
        MainPage("compare page", compared, has_plot=True),
        MainPage("trace page", token.replace("&tour=3", ""), has_plot=True),
        MainPage("response page", reverse("response", args=[served.pk, 1, case])),
        MainPage("endpoint page", reverse("endpoint", args=[served.endpoint.slug])),
        MainPage("probe page", reverse("probe", args=[_probe().pk])),
        MainPage("experiment page", reverse("experiment", args=[_experiment().pk])),
        MainPage("search", f"{reverse('find')}?q=json"),
    )


def _probe() -> ProbeRecord:
    probes.ask("seed", parameters=SMALL)
    return probes.served(probes.honoured)


def _experiment() -> ExperimentRecord:
    """An experiment that has ended: the order of cases moves nothing, a batch moves one pass of each source."""
    build.suite("measured")
    made = plan_experiment(
        suite="measured", endpoint="local", runs=N_RUNS, sources=["order", "batch"], user=build.user("planner")
    )
    start_experiment(experiment_id=made.pk)
    reconcile()
    while (arm := made.arms.filter(status="running").first()) is not None:
        process = build.process()
        for index in range(1, N_RUNS + 1):
            moved = arm.source == "batch" and index == 3
            build.decode(
                RunRecord.objects.get(pk=arm.run_id), index, ("blue", "red" if moved else "blue", "red"), by=process
            )
        reconcile()
    return made
