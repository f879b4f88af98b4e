"""`evalboard diff`: two logs compared without a server, or one split by who answered."""

import json
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

from evalboard.cli.errors import FAILED, LIMIT_REACHED, WRONG_USE
from evalboard.cli.main import main
from evalboard.logged import sources
from tests.importers.openai_logs import body, choice, entry
from tests.recorded import LOGS

ROOT = Path(__file__).resolve().parents[2]
BASELINE, CANDIDATE = (str(LOGS / "inspect" / name) for name in ("fp32_baseline.eval", "bf16_candidate.eval"))


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["diff", *arguments])
    out, err = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return code, out, err


def chat(folder: Path, name: str, *texts: str, model: str = "m", prints: str = "fp_1") -> str:
    lines = [
        {
            "case_id": f"case-{at}",
            "request": {"messages": [{"role": "user", "content": f"Question {at}?"}]},
            "response": {
                "model": model,
                "system_fingerprint": prints,
                "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            },
        }
        for at, text in enumerate(texts)
    ]
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_two_logs_are_compared_and_the_worst_case_stands_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, BASELINE, CANDIDATE, "--limit", "1")
    assert code == 0
    assert f"{CANDIDATE} against {BASELINE}: 0.0 points (50.0 to 50.0), comparable." in out
    assert "note: This release tests the serving stack, and it differs: system fingerprint" in out
    assert "4 cases differ, the worst 1 of them" in out
    assert 'machines called "[plants]"' in out
    assert 'machines called "[roots]"' in out
    assert "margins  A 0.076 nats, B 0.125 nats" in out
    assert "\033" not in out


def test_json_is_the_comparison_with_its_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capsys, BASELINE, CANDIDATE, "--json")
    comparison = json.loads(out)
    assert (code, comparison["counts"]["flipped"], len(comparison["cases"])) == (0, 9, 12)
    assert comparison["progress"]["status"] == "finished"


def test_one_case_is_shown_token_by_token(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, BASELINE, CANDIDATE, "--case", "fact-004")
    lines = out[out.index("position  A") :].splitlines()
    [at] = [line for line in lines if line.split()[:2] == ["8", "·but"]]
    assert at.split() == ["8", "·but", "−1.869", "0.044", "·which", "−1.893", "0.000"]
    assert {len(line) for line in lines[1:10]} == {len(at)}  # the columns stand under one another
    assert "B said:\n  A spider's legs are eight legs, which" in out
    code, _, err = call(capsys, BASELINE, CANDIDATE, "--case", "nothing")
    assert (code, "No case is called nothing" in err) == (WRONG_USE, True)


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ("flip", "flip: 9 pairs chose another token"),
        ("text", "text: 9 pairs differ in text"),
        ("score,points=0.1,cause=error", ""),
        ("kl=1e-5", "kl: "),
        ("kl=1", ""),
        ("cause=backend_changed", "cause: 12 pairs of backend_changed"),
        ("cause=near_tie", "cause: 9 pairs of near_tie"),  # as the numbers look beside another backend
    ],
)
def test_a_limit_that_is_reached_ends_with_5(capsys: pytest.CaptureFixture[str], limits: str, reached: str) -> None:
    code, _, err = call(capsys, BASELINE, CANDIDATE, "--fail-on", limits)
    assert (code, reached in err) == (LIMIT_REACHED if reached else 0, True)


def test_a_fall_by_the_limit_of_points_ends_with_5(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = json.loads((LOGS / "promptfoo" / "out_fp32.json").read_text())
    worse = tmp_path / "worse.json"
    for result in log["results"]["results"]:
        result["score"], result["success"] = 0, False
    worse.write_text(json.dumps(log))
    code, _, err = call(capsys, str(LOGS / "promptfoo" / "out_fp32.json"), str(worse), "--fail-on", "points=1,score")
    assert (code, "points: the score fell by" in err, "changed their score" in err) == (LIMIT_REACHED, True, True)


@pytest.mark.parametrize(
    ("limits", "unknown", "code"),
    [
        ("flip", "flip: no pair of answers has tokens on both sides", FAILED),
        ("cause=sampler_fault", "cause: what shows sampler_fault is not known of both sides", FAILED),
        ("cause=whitespace", "", 0),
        ("shift", "shift: No case can show whether logprobs are equal", FAILED),
        ("score", "score: a side has no scores", FAILED),
        ("points=1", "points: no difference of scores is given", FAILED),
        ("kl=1", "kl: no position has logprobs of the same tokens on both sides", FAILED),
        ("flip,text", "text: 1 pair differs in text; flip: no pair of answers has tokens on both sides", LIMIT_REACHED),
    ],
)
def test_a_limit_that_these_logs_cannot_tell_is_not_passed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, limits: str, unknown: str, code: int
) -> None:
    ours, theirs = chat(tmp_path, "a.jsonl", "yes", "no"), chat(tmp_path, "b.jsonl", "yes", "yes")
    ended, out, err = call(capsys, ours, theirs, "--fail-on", limits)
    assert (ended, unknown in err, "1 case differs" in out) == (code, True, True)


def traced(folder: Path, build: str, off: float = 0.0, cases: int = 12) -> str:
    """A log of one build, three repeats of 12 cases that are the same to the bit. off: nats, in the first `cases`."""
    lines = []
    for case in range(12):
        low = -1.5 - (off if case < cases else 0.0)
        tokens = [entry(word, -0.25, (word, -0.25), ("other", low)) for word in ("It ", "is ", f"{case}.")]
        asked = {"model": "acme", "messages": [{"role": "user", "content": f"Number {case}?"}], "temperature": 0}
        for repeat in (1, 2, 3):
            answer = body(choice(f"It is {case}.", *tokens), system_fingerprint=build)
            lines.append({"case_id": f"c{case}", "repeat": repeat, "request": asked, "response": answer})
    path = folder / f"{build}-{off}-{cases}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("off", "cases", "code", "says"),
    [
        (0.0, 12, 0, "agree to the bit in 12 cases"),
        (0.01, 12, LIMIT_REACHED, "within what rounding may do"),
        (0.01, 2, 0, "agree to the bit in 10 cases. 2 other cases differ"),
        (0.01, 5, LIMIT_REACHED, "within what rounding may do"),
        (2.0, 12, LIMIT_REACHED, "different weights or kernels"),
    ],
)
def test_a_build_that_drifts_reaches_shift_and_one_that_does_not_passes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, off: float, cases: int, code: int, says: str
) -> None:
    ours, theirs = traced(tmp_path, "engine-1"), traced(tmp_path, "engine-2", off, cases)
    ended, out, err = call(capsys, ours, theirs, "--fail-on", "shift")
    assert (ended, says in out) == (code, True), out + err
    assert ("No case differs." in out) == (off == 0)


def test_what_a_log_lacks_is_said_beside_its_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"case": f"c{at}", "prompt": f"{at}?", "answer": "4", "score": 1} for at in range(200)]
    (ours := tmp_path / "ours.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows[0]["score"] = None
    (theirs := tmp_path / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{not json\n")
    _, out, _ = call(capsys, str(ours), str(theirs))
    assert "note on B: 1 answer of 200 unscored by score: its score is over the others." in out
    assert "note on B: Of theirs.jsonl 1 of 201 rows cannot be read and are missing: line 201: is not JSON" in out
    assert "note on A" not in out
    assert "note: Of theirs.jsonl 1 of 201 rows" in call(capsys, str(theirs))[1]
    assert "note on A and B: 1 answer of 200 unscored" in call(capsys, str(theirs), str(theirs))[1]


def test_a_file_of_no_format_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (path := tmp_path / "page.html").write_text("<html>")
    code, _, err = call(capsys, str(path))
    assert (code, err.startswith("evalboard: No known format fits page.html. It looks like a page of HTML")) == (
        4,
        True,
    )


def test_why_no_case_is_the_same_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first, text = chat(tmp_path, "a.jsonl", "yes", "no"), (tmp_path / "a.jsonl").read_text()
    for name, change, words in (
        ("prompt", ("Question", "Other"), "2 ids are on both sides, but of 'case-0' each has another prompt."),
        ("bare", ('"messages"', '"nothing"'), "2 ids are on both sides, but one log does not hold its prompts."),
        ("ids", ("case-", "fact-"), "their ids differ. The first is 'case-0' on one side and 'fact-0' on the other."),
    ):
        (path := tmp_path / f"{name}.jsonl").write_text(text.replace(*change))
        code, _, err = call(capsys, first, str(path))
        assert (code, words in err) == (FAILED, True), err


def test_a_case_that_is_no_pair_says_which_side_lacks_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours, theirs = chat(tmp_path, "a.jsonl", "yes"), chat(tmp_path, "b.jsonl", "yes", "no")
    assert call(capsys, ours, theirs, "--case", "case-0")[1] == "case-0: both sides gave the same answers.\n"
    assert call(capsys, ours, theirs, "--case", "case-1")[1] == "case-1: only B has this case.\n"
    assert call(capsys, theirs, ours, "--case", "case-1")[1] == "case-1: only A has this case.\n"
    other = tmp_path / "c.jsonl"
    other.write_text(Path(theirs).read_text().replace("Question 1", "Another 1"))
    assert "its prompt or its target is another one" in call(capsys, theirs, str(other), "--case", "case-1")[1]


def test_no_change_is_no_fall(capsys: pytest.CaptureFixture[str]) -> None:
    same = str(LOGS / "promptfoo" / "out_fp32.json")
    assert call(capsys, same, same, "--fail-on", "points=0")[0] == 0


def test_a_number_without_a_log_is_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = chat(tmp_path, "a.jsonl", "yes")
    assert call(capsys, log, "#1")[::2] == (FAILED, "evalboard: #1 does not exist.\n")


@pytest.mark.parametrize(
    ("logs", "problem"), [(["", BASELINE], "A log has an empty name"), (["-", "-"], "`-` can be given once")]
)
def test_an_empty_name_and_a_second_standard_input_are_refused(
    capsys: pytest.CaptureFixture[str], logs: list[str], problem: str
) -> None:
    code, _, err = call(capsys, *logs)
    assert (code, problem in err) == (WRONG_USE, True)


@pytest.mark.parametrize("limit", ["flips", "points", "points=x", "cause=moon", "kl=-1", "flip=1"])
def test_a_limit_that_nobody_knows_is_refused(capsys: pytest.CaptureFixture[str], limit: str) -> None:
    code, _, err = call(capsys, BASELINE, CANDIDATE, "--fail-on", limit)
    assert (code, limit in err) == (WRONG_USE, True)


def test_several_logs_of_a_side_are_its_repeats(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours = [chat(tmp_path, f"a{n}.jsonl", "yes", "no") for n in range(2)]
    theirs = [chat(tmp_path, f"b{n}.jsonl", "yes", f"no {n}") for n in range(3)]
    code, out, _ = call(capsys, *ours, "--", *theirs, "--json")
    sides = json.loads(out)["sides"]
    assert code == 0
    assert [len(sides[name]["repeats"]) for name in ("baseline", "candidate")] == [2, 3]
    other = chat(tmp_path, "c.jsonl", "yes", "no", model="other")
    code, _, err = call(capsys, ours[0], other, "--", *theirs)
    assert (code, "are no repeats of one another: they differ in model" in err) == (FAILED, True)
    assert call(capsys, *ours, *theirs)[0] == WRONG_USE
    assert call(capsys, *ours, "--")[0] == WRONG_USE


def test_one_run_of_a_log_is_named_by_its_number(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [json.loads(Path(chat(tmp_path, "a", "yes", model=model)).read_text()) for model in ("one", "two")]
    for row in rows:
        row["request"]["model"] = row["response"]["model"]
    both = tmp_path / "both.jsonl"
    both.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = call(capsys, str(both), str(both))
    assert (code, "holds 2 runs (#1" in err, f"as in {both}#1." in err) == (FAILED, True, True)
    code, out, _ = call(capsys, f"{both}#1", f"{both}#2", "--json")
    sides = json.loads(out)["sides"]
    assert (code, sides["baseline"]["model"], sides["candidate"]["model"]) == (0, "one", "two")
    assert call(capsys, f"{both}#3", f"{both}#1")[0] == FAILED


def test_repeats_have_the_same_prompts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours = chat(tmp_path, "a.jsonl", "yes")
    other = tmp_path / "b.jsonl"
    other.write_text(Path(ours).read_text().replace("Question", "Riddle"))
    code, _, err = call(capsys, ours, str(other), "--", ours)
    assert (code, "they differ in prompts" in err) == (FAILED, True)


def test_a_folder_is_one_log_and_says_what_it_leaves_out(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = shutil.copytree(LOGS / "lm_eval", tmp_path / "logs")
    (folder / "README.md").write_text("# How this was made\n")
    code, out, _ = call(capsys, str(folder), str(folder))
    assert (code, "No case differs." in out) == (0, True)
    left_out = "No known format fits README.md: left out."
    assert f"note on A and B: {left_out}" in out
    assert left_out in json.loads(call(capsys, str(folder), str(folder), "--json")[1])["notes"]["candidate"]


def test_one_log_is_split_by_who_answered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    first = chat(tmp_path, "a.jsonl", "yes", "no", "yes")
    second = Path(chat(tmp_path, "b.jsonl", "yes", prints="fp_2")).read_text().replace("case-0", "case-3")
    Path(first).write_text(Path(first).read_text() + second)
    code, out, _ = call(capsys, first)
    assert (code, "4 answers of chat completions, 2 fingerprints answered." in out) == (0, True)
    assert [line.split()[:1] for line in out.splitlines()[2:]] == [["fp_1"], ["fp_2"]]
    parts = json.loads(call(capsys, first, "--json")[1])[0]["parts"]
    assert [(part["fingerprint"], part["share"]) for part in parts] == [("fp_1", 0.75), ("fp_2", 0.25)]
    assert call(capsys, first, "--fail-on", "flip")[0] == WRONG_USE


def test_a_side_without_a_score_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours, theirs = chat(tmp_path, "a.jsonl", "yes", "no"), tmp_path / "b.jsonl"
    other = Path(chat(tmp_path, "c.jsonl", "yes", "no", prints="fp_2")).read_text().splitlines()
    theirs.write_text("\n".join([Path(ours).read_text().splitlines()[0], other[1]]))
    _, out, _ = call(capsys, ours, str(theirs))
    assert "A: no repeat has a score: the log holds none" in out
    assert "B: 2 backends answered, so it has no score as a whole." in out
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    answer = {"case": "1", "prompt": "a", "answer": "yes", "score": 1}
    whole.write_text(json.dumps(answer))
    cut.write_text(f"{json.dumps(answer)}\n{json.dumps(answer | {'case': '2', 'prompt': 'b', 'answer': None})}")
    _, out, _ = call(capsys, str(cut), str(whole))
    assert "0.0 points (100.0 to 100.0)" in out
    assert "A: no repeat has a score: answers are missing in each. The points are of the cases that both" in out


def test_markdown_reads_no_answer_as_markup(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours, theirs = chat(tmp_path, "a.jsonl", "yes"), chat(tmp_path, "b.jsonl", "no | <b>**@x**")
    _, out, _ = call(capsys, ours, theirs, "--markdown")
    assert "| <code>case&#45;0</code> |" in out
    outside = re.sub("```diff\n.*?\n```", "", out, flags=re.DOTALL)
    assert "<b>" not in outside
    assert "**" not in outside


def test_markdown_shows_where_the_worst_case_parts(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, BASELINE, CANDIDATE, "--markdown", "--fail-on", "flip")
    block = out.split("```")[1].splitlines()
    assert [block[0], *(line[:1] for line in block[1:])] == ["diff", "@", " ", "-", "+"]
    assert ("-[" not in out, block[3].startswith("-plants"), block[4].startswith("+roots")) == (True, True, True)
    assert out.index("**flip&#58; 9 pairs") < out.index("```diff") < out.index("| case |")


def test_markdown_fits_into_a_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours = chat(tmp_path, "a.jsonl", *("`" * 3000 for _ in range(200)))
    theirs = chat(tmp_path, "b.jsonl", *("`" * 20 + "|<&" * 3000 for _ in range(200)))
    _, out, _ = call(capsys, ours, theirs, "--markdown", "--limit", "200")
    assert 50_000 < len(out.encode()) <= 64_000
    shown = re.search(r"200 cases differ&#44; the worst (\d+) of them", out)
    assert shown is not None
    assert int(shown[1]) == out.count("<code>case&#45;")


def test_forms_exclude_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, BASELINE, CANDIDATE, "--markdown", "--json")[0] == WRONG_USE
    assert call(capsys, BASELINE, CANDIDATE, "--case", "fact-004", "--json")[0] == WRONG_USE


def test_an_answer_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ours, theirs = chat(tmp_path, "a.jsonl", "yes"), chat(tmp_path, "b.jsonl", "no \x1b[31m\u202e red")
    for more in ((), ("--case", "case-0")):
        _, out, _ = call(capsys, ours, theirs, *more)
        assert "\\u{1b}" in out
        assert "\x1b" not in out


def test_what_cannot_be_read_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = call(capsys, str(tmp_path / "gone.jsonl"), CANDIDATE)
    assert (code, err.count("does not exist")) == (FAILED, 1)
    other = chat(tmp_path, "a.jsonl", "yes")
    code, _, err = call(capsys, other, CANDIDATE)
    assert (code, "No case of the two logs is the same" in err) == (FAILED, True)


def test_two_sides_that_are_read_at_the_same_time_come_to_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one_by_one = call(capsys, BASELINE, CANDIDATE)
    monkeypatch.setattr(sources, "MIN_AT_ONCE_BYTES", 0)
    assert call(capsys, BASELINE, CANDIDATE) == one_by_one
    broken = tmp_path / "broken.jsonl"
    broken.write_text("no log\n")
    code, _, err = call(capsys, BASELINE, str(broken))
    assert (code, "broken.jsonl" in err) == (FAILED, True)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tour's archives: 1-whole.zip, 2-8bit.zip, 3-4bit.zip."""
    folder = tmp_path_factory.mktemp("tour")
    with tarfile.open(ROOT / "runs" / "samples" / "tour.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def test_archives_of_runs_are_sides(capsys: pytest.CaptureFixture[str], archives: Path, tmp_path: Path) -> None:
    whole, quantised = str(archives / "1-whole.zip"), str(archives / "3-4bit.zip")
    html = tmp_path / "report.html"
    limits = ("--fail-on", "cause=larger_shift,points=50", "--html", str(html))
    code, out, err = call(capsys, whole, quantised, "--limit", "1", *limits)
    assert (code, "cause: 120 pairs of larger_shift." in err) == (LIMIT_REACHED, True), err
    assert f"{quantised} against {whole}: −40.0 points (63.3 to 23.3), comparable." in out
    assert '"arguments": {"city": "[L]isbon"}}' in out
    assert "exit code 5: cause: 120 pairs of larger_shift" in html.read_text()
    code, out, _ = call(capsys, whole, "--json", "--html", str(html))
    [split] = json.loads(out)
    assert (code, split["suite"], [part["n_answers"] for part in split["parts"]]) == (0, "sample-tour", [150])
    assert "answered 1-whole.zip" in html.read_text()


def test_an_archive_that_is_no_side_says_what_to_do(
    capsys: pytest.CaptureFixture[str], archives: Path, tmp_path: Path
) -> None:
    whole, bundle, damaged = archives / "1-whole.zip", tmp_path / "release-3.zip", tmp_path / "damaged.zip"
    with zipfile.ZipFile(bundle, "w") as made:
        made.writestr("manifest.json", '{"format": "evalboard-release", "version": 1}')
    code, _, err = call(capsys, str(whole), str(bundle))
    assert (code, f"{bundle} is a bundle of a release" in err, "export RUN`" in err) == (FAILED, True, True)
    content = whole.read_bytes()
    at = content.index(b"EvT") + 12  # in the first block of its traces
    damaged.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    code, _, err = call(capsys, str(whole), str(damaged))
    assert (code, f"{damaged}: The export is damaged: traces.evt" in err) == (FAILED, True), err
    assert call(capsys, f"{whole}#2", str(whole))[2] == f"evalboard: {whole} holds one run: leave #2 out.\n"
    code, _, err = call(capsys, str(archives), str(whole))
    assert (code, f"name it, as in {whole}." in err) == (FAILED, True), err
    (alone := tmp_path / "alone").mkdir()
    shutil.copy(whole, alone)
    assert call(capsys, str(alone), str(whole), "--limit", "0")[0] == 0
    code, _, err = call(capsys, str(whole), str(whole), "--", str(whole))
    assert (code, "has all repeats of its run: give it as the only file of a side." in err) == (FAILED, True)


def test_no_server_is_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALBOARD_URL", "http://127.0.0.1:1")
    assert call(capsys, BASELINE, CANDIDATE)[0] == 0
