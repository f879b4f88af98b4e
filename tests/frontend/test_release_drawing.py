"""The ruler and the words of a release, on releases of every kind that no engine has to be asked for."""

import pytest

from evalboard.contract.run import Draws
from evalboard.wording.next_steps import STEPS
from frontend.release import page, views
from frontend.release import steps as release_steps
from frontend.release.verdicts import VERDICTS, decisions_on
from frontend.shell.charts import changes
from frontend.shell.charts.axes import Bar
from runs.access.roles import SCOPES
from runs.acts import ActOffer
from runs.tour import LABELS as SAMPLE
from tests.frontend import release_stage as staged

EVERYTHING = frozenset(SCOPES)
SIDES = {"baseline": 61, "candidate": 62}
RERUN = "/releases/22/rerun/?gate=0&side=baseline&side=candidate"


def test_the_dark_part_of_the_bar_ends_at_the_tolerance():
    plate = changes.plate(staged.gate())
    assert plate is not None
    assert plate.worse is not None
    assert plate.worse.x == plate.rows[0].bar.x
    assert plate.worse.end == pytest.approx(plate.tolerance_x, abs=0.01)
    assert plate.rows[0].bar.x < plate.tolerance_x < plate.rows[0].middle < plate.zero_x
    assert [row.words for row in plate.rows] == ["−0.6 [−1.1, −0.1]", "about [−0.9, −0.3]", "[−1.9, +0.7]"]


def test_what_clears_the_tolerance_has_no_dark_part_and_what_lies_beyond_has_no_other():
    ship = changes.plate(staged.of_kind("ship").gates[0])
    beyond = changes.plate(staged.of_kind("no_ship").gates[0])
    assert ship is not None
    assert ship.worse is None
    assert beyond is not None
    assert beyond.worse is not None
    assert beyond.worse.width == beyond.rows[0].bar.width


def test_a_reach_far_wider_than_what_decides_is_cut_with_an_arrow():
    plate = changes.plate(staged.of_kind("suite_too_small").gates[0])
    assert plate is not None
    assert [(row.is_cut_low, row.is_cut_high) for row in plate.rows] == [(False, False), (True, True)]
    assert plate.rows[1].bar == Bar(0.0, 100.0)


@pytest.mark.parametrize("kind", [kind for kind in staged.KINDS if kind != "not_comparable"])
def test_everything_is_drawn_inside_the_plate_and_ticks_name_their_places(kind):
    plate = changes.plate(staged.of_kind(kind).gates[0])
    assert plate is not None
    places = [x for row in plate.rows for x in (row.bar.x, row.bar.end, row.middle) if x is not None]
    assert all(0 <= x <= 100 for x in (*places, plate.tolerance_x, plate.zero_x))
    zero = next((tick for tick in plate.ticks if tick.label == "0"), None)
    assert zero is None or zero.x == pytest.approx(plate.zero_x)


def test_nothing_is_drawn_of_what_may_not_be_compared():
    assert changes.plate(staged.of_kind("not_comparable").gates[0]) is None


def test_rows_share_a_scale_so_that_a_wider_tolerance_lies_further_out():
    gates = staged.of_kind("several").gates
    scale = changes.rows_scale((gate.difference, gate.interval, gate.tolerance_points) for gate in gates)
    rows = [changes.row_ruler(gate.difference, gate.interval, gate.tolerance_points, scale) for gate in gates]
    drawn = {gate.tolerance_points: row.tolerance_x for gate, row in zip(gates, rows, strict=True) if row}
    assert drawn[3.0] < drawn[1.0] < drawn[0.5]
    assert len({row.zero_x for row in rows if row}) == 1


def test_one_suite_of_few_cases_does_not_flatten_the_others():
    scale = changes.rows_scale([(-0.5, (-0.9, -0.1), 1.0), (0.0, (-60.0, 60.0), 1.0)])
    narrow, wide = (changes.row_ruler(0.0, reach, 1.0, scale) for reach in ((-0.9, -0.1), (-60.0, 60.0)))
    assert narrow is not None
    assert narrow.bar is not None
    assert narrow.bar.width > 3
    assert wide is not None
    assert wide.is_cut_low
    assert wide.is_cut_high


def test_a_drop_of_many_tolerances_stands_whole_within_its_row():
    scale = changes.rows_scale([(-12.2, (-13.4, -11.0), 1.0)])
    row = changes.row_ruler(-12.2, (-13.4, -11.0), 1.0, scale)
    assert row is not None
    assert row.middle > 3
    assert row.middle < row.tolerance_x < row.zero_x


def test_repeats_with_the_same_score_all_show():
    strip = changes.strip(staged.of_kind("suite_too_small").gates[0])
    assert strip is not None
    assert [[len(mark.xs) for mark in line.marks] for line in strip.lines] == [[5], [5]]
    assert [line.side for line in strip.lines] == ["baseline", "candidate"]


@pytest.mark.parametrize("kind", staged.KINDS)
def test_there_is_never_more_than_one_primary_step_and_it_comes_first(kind):
    steps = release_steps.steps(staged.of_kind(kind), EVERYTHING)
    assert [step.is_primary for step in steps] == [True] + [False] * (len(steps) - 1) or kind == "ship"
    assert len({step.url for step in steps}) == len(steps)


@pytest.mark.parametrize(("step", "treatment"), [("judge_stack", "stack"), ("judge_service", "service")])
def test_judging_more_than_the_model_is_offered_where_no_fingerprint_shows_what_changed(step, treatment):
    reason, next_step = staged.note("computation_apart", "Two computations."), staged.finding(step, "Judge more.", 0)
    gate = staged.gate(interval=None, verdict="not_comparable", reasons=(reason,))
    gate = gate.model_copy(update={"candidate": gate.baseline})  # of one model
    blocked = staged.report(gate).model_copy(update={"next": (next_step,)})
    assert [f"treatment={treatment}" in each.url for each in release_steps.steps(blocked, EVERYTHING)].count(True) == 1
    assert release_steps.steps(blocked, frozenset({"read"})) == ()


@pytest.mark.parametrize(
    ("code", "is_offered"), [("stack_changed", True), ("model_changed", True), ("mixed_fingerprint", False)]
)
def test_judging_the_service_is_offered_where_model_or_stack_stand_in_the_way(code, is_offered):
    reason = staged.note(code, "Both changed.")
    blocked = staged.report(staged.gate(interval=None, verdict="not_comparable", reasons=(reason,)))
    (step,) = [each for each in release_steps.steps(blocked, EVERYTHING) if "service" in each.label] or [None]
    assert (step is not None) == is_offered
    assert step is None or "treatment=service" in step.url
    assert not release_steps.steps(blocked, frozenset({"read"}))
    judged = blocked.model_copy(update={"treatment": "service"})
    assert not any("service" in each.label for each in release_steps.steps(judged, EVERYTHING))


BOTH = ("baseline", "candidate")


@pytest.mark.parametrize(
    ("step", "block", "named", "label", "query"),
    [
        ("rebaseline", "rebaseline", ("baseline",), "Run the baseline again", "gate=0&side=baseline"),
        ("rebaseline", "scorer_changed", (), "Score the baseline again", ""),
        ("await_scores", "", ("baseline",), "See what scoring waits for", ""),
        ("rebaseline", "judge_changed", BOTH, "Run both sides alternating", "gate=0&side=baseline&side=candidate"),
        (
            "rebaseline",
            "batch_class",
            ("candidate",),
            "Run the candidate under fast",
            "gate=0&side=candidate&profile=fast",
        ),
        ("rebaseline", "model_changed", (), None, ""),  # no run of either side again has another model
        ("pin_batch", "mixed_fingerprint", ("baseline",), "Run the baseline again", "gate=0&side=baseline"),
        ("pin_batch", "mixed_fingerprint", BOTH, "Run both sides alternating", "gate=0&side=baseline&side=candidate"),
        ("pin_batch", "", BOTH, "Run both sides under pinned", "gate=0&side=baseline&side=candidate&profile=pinned"),
        ("run_in_turn", "", BOTH, "Run both sides alternating", "gate=0&side=baseline&side=candidate"),
        ("share_seeds", "", ("candidate",), "Run the candidate again", "gate=0&side=candidate"),
        ("draw_again", "", ("baseline",), "Run the baseline again", "gate=0&side=baseline"),
        ("draw_again", "", ("candidate",), "Run the candidate again", "gate=0&side=candidate"),
        ("draw_again", "", BOTH, "Run both sides alternating", "gate=0&side=baseline&side=candidate"),
    ],
)
def test_the_button_acts_on_the_sides_that_the_step_names(step, block, named, label, query):
    """The sentence of the step is "Run the candidate under the baseline's profile." where batches differ."""
    sides = {
        "baseline": staged.side(61, (80.0,), profile="fast", draws=Draws(0.7, 1)),
        "candidate": staged.side(62, (80.0,), draws=Draws(0.7, 2)),
    }
    reasons = (staged.note(block or "noisy", "Because."),)
    gate = staged.gate(interval=None, verdict="not_comparable", reasons=reasons, **sides)
    blocked = staged.report(gate, settle=None, next=(staged.finding(step, "Do it.", 0, named, block),))
    first, *_ = release_steps.steps(blocked, EVERYTHING)
    assert (None if first.label.startswith("Judge") else first.label) == label
    assert label is None or not query or first.url == f"/releases/{blocked.id}/rerun/?{query}"


@pytest.mark.parametrize(
    ("step", "labels"),
    [
        ("rerun_missing", ["Complete run 61", "Complete run 62"]),
        ("share_seeds", ["Complete run 61", "Complete run 62"]),  # of one seed: a side lacks repeats of the other
        ("second_run", ["Run the baseline a second time", "Run the candidate a second time"]),
        ("judge_again", ["Judge the baseline again", "Judge the candidate again"]),
        ("pin_endpoint", ["Add baseline pinned to one backend", "Add candidate pinned to one backend"]),
    ],
)
@pytest.mark.parametrize("named", [("baseline",), ("candidate",), BOTH])
def test_each_side_that_a_step_names_has_a_button_of_its_own(step, labels, named):
    sides = {
        name: staged.side(run, (80.0,), draws=Draws(0.7, 1), profile=name, endpoint=name) for name, run in SIDES.items()
    }
    opened = staged.report(staged.gate(**sides), settle=None, next=(staged.finding(step, "Again.", 0, named),))
    shown = [each.label for each in release_steps.steps(opened, EVERYTHING)]
    assert shown == [*(label for name, label in zip(SIDES, labels, strict=True) if name in named), "Sign off…"]


@pytest.mark.parametrize("code", sorted(STEPS))
def test_each_step_that_a_verdict_names_has_a_button(code):
    """Judging more than the model is offered where one model ran on two stacks."""
    gate = staged.gate(**{name: staged.side(run, (80.0,), model="paint-1b") for name, run in SIDES.items()})
    plan = {"settle": staged.report().settle, "settle_targeted": staged.report().settle}
    opened = staged.report(gate, **plan, next=(staged.finding(code, "Do it.", 0, BOTH),))
    lines = release_steps.steps(opened, EVERYTHING, sampling="warm")
    assert [each for each in lines if each.url != release_steps.TO_SIGN] or code in ("sign", "decide_by_hand")
    seen = release_steps.steps(opened, frozenset({"read"}), sampling="warm")
    assert [each.label for each in seen if "instead" not in each.label] == {
        "find_build": ["Compare the two runs"],
        "judge_more": ["Change the judge"],
        "larger_suite": ["Use a larger suite"],
    }.get(code, [])


def test_an_endpoint_is_added_for_every_side_that_a_server_answered():
    sides = {name: staged.side(run, (80.0,), endpoint=name) for name, run in SIDES.items()}
    sides["baseline"] = sides["baseline"].model_copy(update={"is_log": True})
    opened = staged.report(staged.gate(**sides), settle=None, next=(staged.finding("pin_endpoint", "Pin it.", 0),))
    shown = [each.label for each in release_steps.steps(opened, EVERYTHING)]
    assert shown == ["Add candidate pinned to one backend", "Sign off…"]
    again = opened.model_copy(update={"next": (staged.finding("second_run", "Again.", 0, BOTH),)})
    first, second, _ = release_steps.steps(again, EVERYTHING)
    assert (first.label, first.url) == ("Import a second log of the baseline", "/imports/?second_of=61")
    assert second.label == "Run the candidate a second time"


def test_cases_are_shuffled_under_any_profile():
    opened = staged.report(settle=None, next=(staged.finding("shuffle", "Do it.", 0),))
    first, *_ = release_steps.steps(opened, EVERYTHING)
    assert first.label == "Run both sides in shuffled order"


@pytest.mark.parametrize(
    ("code", "label", "url"),
    [
        ("pin_endpoint", "Add router pinned to one backend", "/settings/endpoints/new/?kind=openai&from=router"),
        ("call_uncached", "Add router without its cache", "/settings/endpoints/new/?kind=openai&from=router"),
        ("draw", "Run both sides under warm", f"{RERUN}&profile=warm"),
        ("shuffle", "Run both sides in shuffled order", f"{RERUN}&shuffled=1"),
        ("find_build", "Compare the two runs", "/compare/61/62/"),
        ("use_mean", "Choose another policy", "/releases/new/?candidate=62&baseline=61"),
        (
            "log_more",
            "Run both in turn",
            "/runs/new/?suite=toolcalls&endpoint=router&in_turn_with=router&profile=pinned",
        ),
    ],
)
def test_a_step_leads_to_the_act_that_it_names(code, label, url):
    gate = staged.gate(**{name: staged.side(run, (80.0,), endpoint="router") for name, run in SIDES.items()})
    opened = staged.report(gate, settle=None, next=(staged.finding(code, "Do it.", 0),))
    first, *_ = release_steps.steps(opened, EVERYTHING, sampling="warm")
    assert (first.label, first.url) == (label, url)
    seen = [each.label for each in release_steps.steps(opened, frozenset({"read"}), sampling="warm")]
    assert seen == ([label] if code == "find_build" else [])


def test_two_runs_that_took_turns_on_unknown_servers_are_judged_under_paired():
    gate = staged.gate(is_in_turn=True)
    opened = staged.report(gate, settle=None, next=(staged.finding("log_more", "Do it.", 0),))
    first, *_ = release_steps.steps(opened, EVERYTHING)
    assert (first.label, first.url.partition("&policy=")[2]) == ("Judge under paired", "paired&treatment=service")


def test_without_a_profile_that_samples_an_admin_is_led_to_adding_one():
    opened = staged.report(settle=None, next=(staged.finding("draw", "Do it.", 0),))
    first, *_ = release_steps.steps(opened, EVERYTHING)
    assert (first.label, first.url) == ("Add a profile with a temperature", "/settings/profiles/new/?from=pinned")


def test_a_no_ship_leads_to_the_cases_that_broke_whoever_reads_it():
    for scopes in (EVERYTHING, frozenset({"read"})):
        first, *rest = release_steps.steps(staged.of_kind("no_ship"), scopes)
        assert (first.label, first.is_primary) == ("See the 16 cases that broke", True)
        assert first.url == "/compare/61/62/?outcome=broken&look=5#cases"
        assert [step.label for step in rest if step.url == "#sign"] == (["Sign off…"] if len(scopes) > 1 else [])


def test_a_no_ship_in_which_no_case_broke_leads_to_none():
    opened = staged.report(staged.gate(verdict="no_ship", changed=staged.changed()), settle=None, next=())
    assert [each.label for each in release_steps.steps(opened, EVERYTHING)] == ["Sign off…"]


def test_the_first_step_that_this_person_may_do_leads():
    runner, reader = frozenset({"read", "run"}), frozenset({"read"})
    refused = staged.report().settle.model_copy(update={"refused": "Run 61 is incomplete."})
    looks, changes_judge = (
        staged.report(settle=None, next=(staged.finding(code, "Do it.", 0),)) for code in ("find_build", "judge_more")
    )
    for report, scopes, leads in (
        (staged.report(), runner, [True]),
        (staged.report(outcome="rejected"), runner, [True]),  # what is signed may be settled all the same
        (staged.report(settle=refused), runner, [False]),
        (staged.report(settling="Repeats are at work."), EVERYTHING, [False]),
        (looks, reader, [True]),
        (changes_judge, reader, [False]),
        (changes_judge, runner, [True]),
    ):
        assert [each.is_primary for each in release_steps.steps(report, scopes)] == leads


def test_a_plan_that_is_refused_now_keeps_its_reason():
    plan = staged.report().settle.model_copy(update={"refused": "Run 61 is incomplete."})
    lines = release_steps.steps(staged.report(settle=plan), EVERYTHING)
    assert [each.refused for each in lines] == ["", "Run 61 is incomplete."]


@pytest.mark.parametrize(
    ("verdict", "newer", "scopes", "is_offered"),
    [
        ("not_comparable", 7, EVERYTHING, True),
        ("not_comparable", None, EVERYTHING, False),
        ("not_comparable", 7, frozenset({"read"}), False),
        ("inconclusive", 7, EVERYTHING, False),
    ],
)
def test_a_newer_baseline_is_offered_where_the_present_one_cannot_be_compared(verdict, newer, scopes, is_offered):
    blocked = staged.report(staged.gate(verdict=verdict), settle=None, next=())
    steps = release_steps.steps(blocked, scopes, newer_baseline=newer)
    assert ("Judge against run 7" in [each.label for each in steps]) == is_offered


def test_the_tours_sample_is_not_told_to_import_new_logs_and_everybody_elses_release_is():
    lines = tuple(staged.finding(code, "Do it.", 0) for code in ("import_again", "use_paired"))
    for labels, codes in (
        (SAMPLE, ["use_paired"]),
        ({**SAMPLE, "commit": "1f3a"}, ["use_paired"]),
        ({}, ["import_again", "use_paired"]),
    ):
        opened = staged.report(settle=None, next=lines, labels=labels)
        assert [line.code for line in release_steps.possible_next(opened)] == codes
        assert ("Import new logs" in [each.label for each in release_steps.steps(opened, EVERYTHING)]) == (not labels)


def test_a_step_acts_on_the_gate_that_it_names_and_else_on_the_headline_s():
    lines = (staged.finding("find_build", "Find it.", 0), staged.finding("find_build", "Find it."))
    gates = (staged.gate(), staged.shipping())
    opened = staged.report(*gates, headline_gate=1, settle=None, next=lines)
    urls = [each.url for each in release_steps.steps(opened, EVERYTHING)]
    assert urls == ["/compare/61/62/", "/compare/63/64/", "#sign"]
    twice = staged.report(*gates, settle=None, next=(lines[0], lines[0]))
    assert [each.url for each in release_steps.steps(twice, EVERYTHING)] == ["/compare/61/62/", "#sign"]


def test_two_buttons_stand_on_the_page_and_the_others_in_a_menu_and_signing_has_a_bar():
    lines = tuple(
        release_steps.Step(name, url) for name, url in (("a", "/a"), ("b", "/b"), ("c", "/c"), ("s", "#sign"))
    )
    shown, menu = release_steps.split_steps(lines)
    assert [step.label for step in shown] == ["a", "b"]
    assert [step.label for step in menu] == ["c"]


def test_what_was_signed_has_no_primary_step():
    assert not any(step.is_primary for step in release_steps.steps(staged.of_kind("ship"), EVERYTHING))


def test_while_repeats_are_at_work_nothing_else_is_urged():
    waiting = staged.report(settling="Repeats are at work.")
    assert [step.label for step in release_steps.steps(waiting, EVERYTHING)] == ["Sign off…"]


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_step_that_cannot_be_done_now_comes_last_with_its_reason_and_one_that_never_can_is_left_out(is_shown):
    again, sign = (
        staged.finding("rebaseline", "Run it again.", 0, ("baseline",)),
        staged.finding("certify", "Measure it.", 0),
    )
    waiting = staged.report(next=(again, sign))
    no = ActOffer("again", "Run 61 is running.", is_shown)
    lines = release_steps.steps(waiting, EVERYTHING, can=lambda act, runs: no if 61 in runs else ActOffer(act))
    assert [(line.label, line.refused) for line in lines if line.refused] == (
        [("Run the baseline again", "Run 61 is running.")] if is_shown else []
    )
    assert (lines[0].label, lines[0].is_primary) == ("Probe determinism", True)
    assert all(line.label != "Run the baseline again" for line in sum(release_steps.split_steps(lines), ()))


def test_the_cost_stands_beside_the_button():
    first = release_steps.steps(staged.report(), EVERYTHING)[0]
    assert (first.label, first.cost) == ("Run 15 more repeats", "≈ 1\u00a0h 35\u00a0min")
    unknown = staged.report(settle=staged.PLAN.model_copy(update={"minutes": None}))
    assert release_steps.steps(unknown, EVERYTHING)[0].cost == ""


def test_no_word_of_the_plate_is_struck_by_the_limit():
    for kind in staged.KINDS:
        plate = changes.plate(staged.of_kind(kind).gates[0])
        for row in plate.rows if plate else ():
            above, below = row.words_y - 11, row.words_y + 3  # of 12 px type on its line
            assert not any(line.top < below and line.bottom > above for line in plate.lines), (kind, row.name)
            middle = row.bar_y + changes.BAR_HEIGHT / 2
            assert any(line.top < middle < line.bottom for line in plate.lines)


def test_a_mixed_side_is_shown_bucket_by_bucket():
    gate = staged.of_kind("not_comparable").gates[0]
    buckets = {61: (staged.bucket(),), 62: (staged.bucket("a81c", 0.94), staged.bucket("d07e", 0.06))}
    served = page.served(gate, buckets, staged.compared(), None)
    assert served.title == "Who served the candidate’s responses"
    assert served.columns == ("A", "B")
    [side] = served.sides
    assert [round(part.share, 2) for part in side.parts] == [0.94, 0.06]
    assert side.parts[1].bar.end == pytest.approx(100, abs=0.01)
    assert [round(part.score, 2) for part in side.parts] == [80.84, 64.54]


def test_only_a_ship_may_be_approved():
    assert [code for code in VERDICTS if "approve" in decisions_on(code)] == ["ship"]
    assert [code for code in VERDICTS if "waive" not in decisions_on(code)] == ["ship"]


def test_a_side_without_a_certificate_leads_to_the_probe_that_would_give_one():
    wanting = staged.report(next=(staged.finding("certify", "Have the promise measured.", 0),))
    first = release_steps.steps(wanting, EVERYTHING)[0]
    assert (first.label, first.is_primary) == ("Probe determinism", True)
    assert first.url == f"/probes/?endpoint={wanting.headline.candidate.endpoint}&kind=determinism#new"


@pytest.mark.parametrize(("other", "offered"), [("later", True), ("earlier", False), ("candidate", False)])
def test_the_baseline_that_is_offered_instead_came_after_this_one(monkeypatch, other, offered):
    gate = staged.gate()
    ours, candidate = gate.baseline.run_id, gate.candidate.run_id
    run = {"later": max(ours, candidate) + 1, "earlier": ours - 1, "candidate": candidate}[other]
    monkeypatch.setattr(views, "baseline_runs", lambda suite, profile: (ours, run))
    assert views.newer_baseline(gate) == (run if offered else None)
