"""`evalboard diff --html`: one file with what `--json` says, which loads nothing and which no log can break."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evalboard.cli.errors import LIMIT_REACHED, WRONG_USE
from frontend.compare import log_report
from tests.cli.test_diff import BASELINE, CANDIDATE, call, chat

EVIL = (
    "<script>alert(1)</script></style><img src=x onerror=alert(2)> <!-- \"' {{ x }} {% y %} \x07\x1b[31m \u202e é 漢字"
)
VOID = {"meta", "input", "wbr", "br"}
OPTIONAL_ENDS = {"tr", "td", "th"}


class Parsed(HTMLParser):
    """A report as elements: each start with its attributes, texts by the innermost element, and what was left open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.starts: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL_ENDS:
            self.open.pop()
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.starts if name == tag]

    def text(self) -> str:
        return " ".join("".join(text for tag, text in self.texts if tag not in ("script", "style")).split())


def lines(folder: Path, name: str, rows: list[dict[str, Any]]) -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def report(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[str, Parsed, str]:
    """The report of these arguments, parsed, and what was printed beside it."""
    path = folder / "report.html"
    code, out, err = call(capsys, *arguments, "--html", str(path))
    assert (code, f"the report is in {path}" in err) == (0, True)
    html = path.read_text(encoding="utf-8")
    parsed = Parsed(html)
    assert not parsed.open
    return html, parsed, out


def check_closed(html: str, parsed: Parsed) -> None:
    """Nothing leads out of the file, and no script or style runs but those that its policy names."""
    for tag, attributes in parsed.starts:
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            assert name not in attributes or attributes[name].startswith("#"), (tag, attributes)
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
    assert not re.search(r"@import|url\(", "".join(text for tag, text in parsed.texts if tag == "style"))
    [policy] = [each["content"] for each in parsed.all("meta") if "Policy" in each.get("http-equiv", "")]
    inlined = re.findall(r"<(?:script|style)[^>]*>(.*?)</(?:script|style)>", html, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inlined]
    assert Counter(re.findall(r"'sha256-([^']+)'", policy)) == Counter(digests)
    assert len(inlined) == 4
    assert "default-src 'none'" in policy


def test_the_file_says_what_json_says_and_loads_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"case": f"c{at}", "prompt": f"{at}?", "answer": "yes", "score": 1} for at in range(40)]
    ours = lines(tmp_path, "a.jsonl", rows)
    theirs = lines(
        tmp_path,
        "b.jsonl",
        [
            row | ({"answer": "no", "score": 0} if at < 7 else {"answer": "Yes"} if at < 12 else {})
            for at, row in enumerate(rows)
        ],
    )
    html, parsed, out = report(capsys, tmp_path, ours, theirs, "--json")
    check_closed(html, parsed)
    said, text = json.loads(out), parsed.text()
    assert said["score"] == {"baseline": 100.0, "candidate": 82.5, "difference": -17.5}
    assert "baseline 100.0 → candidate 82.5 −17.5 points" in text
    lists = dict(re.findall(r'id="list-([\w-]+)"[^>]*> [\w ]+ <b>(\d+)</b>', html))
    assert lists == {
        **{part.replace("_", "-"): str(n) for part, n in said["parts"].items() if n},
        "all": str(said["counts"]["n_cases"]),
    }
    rows_of = Counter(name for each in parsed.all("tr") for name in each.get("class", "").split())
    assert {f"in-{name}": int(n) for name, n in lists.items() if name != "all"} == {
        name: n for name, n in rows_of.items() if name.startswith("in-")
    }
    [line] = said["ledger"]
    assert (line["cause"], line["n_cases"], line["points"]) == ("unknown", 7, -17.5)
    assert f"{line['cause']} {line['n_cases']} −17.5 All causes 7 −17.5" in text
    assert len(parsed.all("article")) == len(said["cases"]) == 12
    assert "exit code 0: no limit was set" in text
    assert f"evalboard import {ours} {theirs}" in text


def test_tokens_stand_side_by_side_with_their_alternatives(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    html, parsed, out = report(capsys, tmp_path, BASELINE, CANDIDATE)
    check_closed(html, parsed)
    text = parsed.text()
    assert "4 cases differ" in out  # the text is printed too
    assert "At 26 the baseline chose plants and the candidate roots." in text
    assert "plants chosen 13.7 % −1.988" in text.replace("\u00a0", " ")
    assert "served by vllm-0.32.0-ac2590de vllm-0.32.0-bfec4654 settings max_tokens 32, seed 42" in text
    assert "Comparable, with a note." in text
    assert f"sha256:{hashlib.sha256(Path(BASELINE).read_bytes()).hexdigest()}" in html
    assert not re.search(r"sprite\.svg", html)


def test_no_log_breaks_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = EVIL.replace("\x07\x1b[31m \u202e", "")
    rows = [
        {
            "case": f"{at} {name}",
            "prompt": f"{at} {EVIL}",
            "answer": f"{EVIL} {at}",
            "model": name,
            "target": EVIL,
            "score": 1,
        }
        for at in range(3)
    ]
    rows[1] |= {"prompt": "p" * 300_000, "answer": "x " * 500_000}
    theirs = [row | {"answer": row["answer"] + "!", "score": 0} for row in rows]
    html, parsed, _ = report(capsys, tmp_path, lines(tmp_path, "a.jsonl", rows), lines(tmp_path, "b.jsonl", theirs))
    check_closed(html, parsed)
    assert len(html.encode()) < 120_000
    assert (len(parsed.all("script")), len(parsed.all("img"))) == (3, 0)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)
    text = parsed.text()
    assert "⟨U+202E⟩" in text
    assert "{{ x }} {% y %}" in text
    assert "more characters are left out" in text
    assert "The texts part at character 1000000." in text


def test_what_does_not_fit_is_left_out_and_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_report, "BYTES", 90_000)
    rows = [{"case": f"c{at}", "prompt": f"{at}?", "answer": "yes " * at, "score": 1} for at in range(400)]
    theirs = [row | {"answer": row["answer"] + "no"} for row in rows]
    html, parsed, _ = report(capsys, tmp_path, lines(tmp_path, "a.jsonl", rows), lines(tmp_path, "b.jsonl", theirs))
    assert 80_000 < len(html.encode()) <= 90_000
    n_rows, n_pairs = (sum("class" in each for each in parsed.all(tag)) for tag in ("tr", "article"))
    said = f"The list has the first {n_rows} of 400 samples, the worst first. The answers of {n_pairs} of the 400 that "
    assert f"{said}differ are laid side by side, the worst first. The file is kept under 90 kB" in parsed.text()
    links = {each["href"] for each in parsed.all("a") if each["href"].startswith("#case-")}
    assert links == {f"#{each['id']}" for each in parsed.all("article")}


def test_one_log_repeats_and_logs_without_scores_make_reports(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ours = [chat(tmp_path, f"a{at}.jsonl", "yes", "no") for at in range(3)]
    theirs = [chat(tmp_path, f"b{at}.jsonl", "yes", "no" if at else "yes", prints="fp_2") for at in range(3)]
    html, parsed, _ = report(capsys, tmp_path, *ours, "--", *theirs)
    check_closed(html, parsed)
    assert "1 of 2 samples read otherwise" in parsed.text()
    assert "repeats 3 same" in parsed.text()
    assert f"evalboard diff {' '.join(ours)} -- {' '.join(theirs)} --html" in parsed.text()
    html, parsed, _ = report(capsys, tmp_path, ours[0])
    check_closed(html, parsed)
    rows = [{"case": "1", "prompt": "a", "answer": "yes", "score": 1}]
    unnamed, named = lines(tmp_path, "u.jsonl", rows), lines(tmp_path, "n.jsonl", [rows[0] | {"model": "paint-1b"}])
    assert "unnamed model" not in report(capsys, tmp_path, unnamed, unnamed)[1].text()
    assert "served by" not in report(capsys, tmp_path, unnamed, unnamed)[1].text()  # unknown is never the same
    assert "model unknown paint-1b" in report(capsys, tmp_path, unnamed, named)[1].text()
    assert "1 backend answered a0.jsonl" in parsed.text()
    assert "fp_1 – m 2 100 % –" in parsed.text()


@pytest.mark.parametrize("path", ["no/folder/report.html", "folder", "a.jsonl"])
def test_a_path_that_cannot_be_written_is_refused_before_logs_are_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.jsonl").write_text("no log")
    before = sorted(tmp_path.iterdir())
    code, out, err = call(capsys, "a.jsonl", "missing.jsonl", "--html", path)
    assert (code, out, path in err) == (WRONG_USE, "", True)
    assert "missing.jsonl" not in err
    assert (sorted(tmp_path.iterdir()), (tmp_path / "a.jsonl").read_text()) == (before, "no log")


def test_a_link_stays_and_no_device_is_replaced(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report, link = tmp_path / "report.html", tmp_path / "latest.html"
    link.symlink_to(report.name)
    assert call(capsys, BASELINE, CANDIDATE, "--html", str(link))[0] == 0
    assert (link.is_symlink(), report.read_bytes()[:9]) == (True, b"<!doctype")
    os.mkfifo(tmp_path / "pipe")
    link.unlink()
    link.symlink_to("pipe")  # as /dev/stdout is one
    before = sorted(tmp_path.iterdir())
    for path in (link, tmp_path / "pipe"):
        code, _, err = call(capsys, BASELINE, CANDIDATE, "--html", str(path))
        assert (code, "no file that can be replaced" in err) == (WRONG_USE, True)
    assert (link.is_symlink(), sorted(tmp_path.iterdir())) == (True, before)
    with report.open("w") as stdout:
        words = [sys.executable, "-m", "evalboard", "diff", BASELINE, CANDIDATE, "--html", str(report)]
        assert subprocess.run(words, stdout=stdout, stderr=subprocess.DEVNULL).returncode == WRONG_USE


def test_the_exit_code_is_that_of_the_limits_and_an_old_report_is_replaced(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    code, out, err = call(capsys, BASELINE, CANDIDATE, "--fail-on", "flip", "--html", str(path), "--markdown")
    assert (code, out.startswith("###"), "flip: 9 pairs" in err) == (LIMIT_REACHED, True, True)
    assert "exit code 5: flip: 9 pairs chose another token" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]
    kept = path.read_bytes()
    code, _, _ = call(capsys, BASELINE, str(tmp_path / "missing.eval"), "--html", str(path))
    assert (code, path.read_bytes()) == (4, kept)
