"""The page that makes a suite: what was read is shown, mistakes are at their lines, and only saving stores."""

import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from runs.models import Suite, SuiteVersionRecord, TrialRecord
from runs.suites import TRIALS, fail_trial
from tests import build
from tests.casts import cast

pytestmark = pytest.mark.django_db
PAGE = "/suites/new/"
SHEET = "frage,gold,tags,source\nWhat is 40 + 2?,42,sums,me\n<b>Capital</b> of Norway?,Oslo,geo,me\n"


@cast
def endpoint() -> str:
    build.profile()
    return build.endpoint()


def send(client: Client, act: str = "preview", text: str = SHEET, **fields: Any) -> Any:
    columns = {"columns_of": text.split("\n")[0], "column_prompt": "frage", "column_target": "gold"}
    return client.post(PAGE, {"act": act, "text": text, "scorer": "contains", **columns, **fields})


def words(answer: Any, status: int = 200) -> str:
    assert answer.status_code == status
    text = re.sub(r"<[^>]*>", " ", answer.content.decode().split('id="main"')[1])
    return " ".join(unescape(text).split())


def test_a_preview_says_what_was_read_and_stores_nothing(engineer: Client) -> None:
    shown = words(send(engineer))
    assert "2 cases, read as CSV. It takes prompts from frage, targets from gold and tags from tags." in shown
    assert "It does not read source. No column has ids" in shown
    assert "<b>Capital</b> of Norway? Oslo" in shown
    assert not Suite.objects.exists()


def test_saving_stores_a_version_and_then_the_next(engineer: Client) -> None:
    first = send(engineer, "save", slug="towns", max_tokens="16")
    assert (first.status_code, first["Location"]) == (302, "/suites/towns/?endpoint=")
    stored = SuiteVersionRecord.objects.get()
    assert (stored.max_tokens, stored.n_cases, stored.scorer.spec["default"]["kind"]) == (16, 2, "contains")
    assert "towns exists, so this becomes its version 2" in words(send(engineer, slug="towns"))
    assert "towns v1 has this content already" in words(send(engineer, slug="towns", max_tokens="16"))
    send(engineer, "save", slug="towns", scorer="exact", options='{"part": "last_word"}')
    assert SuiteVersionRecord.objects.get(number=2).scorer.spec["default"]["part"] == "last_word"


def test_a_suite_that_another_saved_after_the_preview_is_shown_again_first(engineer: Client) -> None:
    send(engineer, "save", slug="towns")
    mine = {"slug": "towns", "scorer": "exact"}
    previewed = re.search('name="previewed" value="([^"]*)"', send(engineer, **mine).content.decode())
    assert previewed is not None
    assert previewed[1] == "towns 2"
    send(engineer, "save", slug="towns", max_tokens="8")
    shown = words(send(engineer, "save", **mine, previewed=previewed[1]), 422)
    assert "Version 2 of towns was stored after the preview. Save again to add version 3." in shown
    assert "towns exists, so this becomes its version 3" in shown
    assert SuiteVersionRecord.objects.count() == 2
    assert send(engineer, "save", **mine, previewed="towns 3").status_code == 302
    assert SuiteVersionRecord.objects.get(number=3).scorer.spec["default"]["kind"] == "exact"


def test_a_suite_without_a_name_is_kept_on_the_page(engineer: Client) -> None:
    shown = words(send(engineer, "save"), 422)
    assert "Give the suite a name." in shown
    assert "2 cases, read as CSV" in shown
    assert "is the address of the page" in words(send(engineer, "save", slug="new"), 422)


def test_mistakes_are_named_by_line(engineer: Client) -> None:
    shown = words(send(engineer, text="prompt,target\nOne,\nTwo,2,3\n", columns_of=""), 422)
    assert "line 3: has 3 cells, and the header has 2" in shown
    lines = '{"id": "a", "prompt": "x", "target": "y"}\n{"id": "a", "prompt": "x", "target": "y"}'
    assert "line 2.id: is the id of line 1 too" in words(send(engineer, text=lines), 422)
    assert "Choose a file, or paste the cases here." in words(send(engineer, text=" "), 422)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04" + b"x" * 100, "Save its sheet as"),
        (b"prompt,target\n\xff\xfe,x\n", "Line 2 is not UTF-8"),
        (b"a," * 10_000 + b"\n", "has 10,001 columns; the most is 100"),
        (b"x" * (16 * 2**20 + 1), "Send it with: evalboard suite push FILE"),
    ],
    ids=["spreadsheet", "bad bytes", "many columns", "large"],
)
def test_a_file_that_is_no_suite_is_refused_with_what_to_do(engineer: Client, content: bytes, said: str) -> None:
    file = SimpleUploadedFile("Towns of Norway.csv", content)
    assert said in words(send(engineer, text="", file=file), 422)


def test_a_file_is_read_and_stays_on_the_page(engineer: Client) -> None:
    answer = send(engineer, text="", file=SimpleUploadedFile("Towns 2.csv", b"prompt,target\nOne,1\n"), columns_of="")
    assert "1 case, read as CSV." in words(answer)
    page = answer.content.decode()
    assert 'value="towns-2"' in page
    assert "One,1" in page.split("<textarea")[1].split("</textarea>")[0]


def test_a_case_is_tried_and_followed(engineer: Client, endpoint: str) -> None:
    sent = send(engineer, "try", endpoint=endpoint, case="row-2")
    trial = TrialRecord.objects.get()
    assert (trial.case["id"], str(trial.created_by)) == ("row-2", "engineer")
    assert "Workers" in words(sent), "no worker takes it, and the page says so"
    part = f"{PAGE}?trial={trial.pk}"
    assert f'hx-get="{part}"' in sent.content.decode()
    assert f'hx-get="{part}"' in engineer.get(part).content.decode()
    lease = TRIALS.claim(TrialRecord.objects.all(), worker=build.worker())
    assert lease is not None
    build.answer_trial(lease, "<i>Bergen</i>")
    ended = unescape(engineer.get(part).content.decode())
    assert "hx-get" not in ended
    assert "<strong>Wrong.</strong>" in ended
    assert "&lt;i&gt;Bergen" in engineer.get(part).content.decode()
    assert not Suite.objects.exists()
    nowhere = words(send(engineer, "try", endpoint=endpoint, case="row-9"), 422)
    assert "The suite has no case row-9." in nowhere


def test_an_endpoint_that_gave_no_answer_is_no_longer_the_first_choice(engineer: Client, endpoint: str) -> None:
    other = build.endpoint("zz-answers")
    assert send(engineer).content.decode().index(f'value="{endpoint}"') > 0
    send(engineer, "try", endpoint=endpoint, case="row-1")
    lease = TRIALS.claim(TrialRecord.objects.all(), worker=build.worker())
    assert lease is not None
    fail_trial(lease=lease, reason="Connection refused.")
    ended = unescape(engineer.get(f"{PAGE}?trial={TrialRecord.objects.get().pk}").content.decode())
    assert f'Choose another endpoint, or <a href="/endpoints/{endpoint}/">see that endpoint</a>.' in ended
    page = send(engineer).content.decode()
    assert page.index(f'value="{other}"') < page.index(f'value="{endpoint}"')
    assert send(engineer, "save", slug="towns", endpoint=endpoint)["Location"] == "/suites/towns/?endpoint="
    assert send(engineer, "save", slug="towns", endpoint=other)["Location"].endswith(f"?endpoint={other}")
