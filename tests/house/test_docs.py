"""Links and anchors of the documents lead somewhere, and what they tell a reader to type exists."""

import json
import re
import shlex
from base64 import b64encode
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from django.core.management import get_commands
from standardwebhooks import Webhook

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b((?:docs|bench|tests/rig)/[A-Za-z-]+\.md)((?:#[\w-]+)?)")  # as code and messages name a page
PLACES = ("docs", "bench", "tests", "evalboard", "frontend", "runs", "worker", "tools", "deploy")
PAGES = sorted([*ROOT.glob("*.md"), *(path for place in PLACES for path in (ROOT / place).rglob("*.md"))])
KINDS = {".py", ".html", ".js", ".conf", ".toml", ".yaml", ".env", ""}  # of files of code that name pages
FILES = [*ROOT.glob("*"), *(path for place in PLACES for path in (ROOT / place).rglob("*"))]
CODE = sorted(path for path in FILES if path.suffix in KINDS and path.is_file())


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    bare = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in re.findall(r"(?m)^#+ (.+)$", text))
    made = (re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in bare)
    return frozenset([*made, *re.findall(r'<a id="([\w-]+)">', text)])


def leads_nowhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    aim = (page.parent / path).resolve() if path else page
    return not aim.exists() or (bool(anchor) and anchor not in anchors(aim))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_of_a_page_leads_somewhere(page: Path) -> None:
    links = LINK.findall(FENCE.sub("", page.read_text()))
    assert not [link for link in links if "://" not in link and leads_nowhere(page, link)]


def test_every_page_that_code_names_is_there() -> None:
    texts = ((str(path.relative_to(ROOT)), path.read_text(errors="ignore")) for path in CODE)
    named = {(path, *name) for path, text in texts for name in NAMED.findall(text)}
    assert len(named) > 50
    assert not {each for each in named if leads_nowhere(ROOT / "README.md", each[1] + each[2])}


FOLDERS = "tests|bench|runs|evalboard|worker|frontend|tools|deploy"
FILE = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w/.-]*\w\.(?:py|sh|json))\b")
ONLY = re.compile(r"--only ([\w ]+)")


def test_every_file_and_part_of_the_bench_that_a_page_names_is_there() -> None:
    pages = [page.read_text() for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
    files = {path for text in pages for path in FILE.findall(text)}
    parts = {part for text in pages for named in ONLY.findall(text) for part in named.split()}
    assert len(files) > 100
    assert not {path for path in files if not (ROOT / path).is_file()}
    assert not {part for part in parts if not (ROOT / "bench" / f"bench_{part}.py").is_file()}


BLOCK = re.compile(r"(?:<!-- body of (\w+ \S+) -->\n)?^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
CURL = re.compile(r"^curl (?:.*\\\n)*.*$", re.MULTILINE)
CALL = re.compile(r"`(GET|POST|DELETE) (?:/api/v1)?(/[^\s`?]*)[^`]*`")
ELSEWHERE = re.compile(r"/api/public/|/v1/experiments/|/models$|/generate/$")  # of other servers
BODY, METHOD = {"-d", "--data", "--json"}, {"-X", "--request"}


@cache
def operations() -> tuple[dict[str, Any], list[tuple[re.Pattern[str], dict[str, Any]]]]:
    """Return the stored schema, and the operations of each path by a pattern of the addresses that have it."""
    schema = yaml.load((ROOT / "docs" / "openapi.yaml").read_text(), yaml.CSafeLoader)
    paths = ((path.removeprefix("/api/v1").rstrip("/"), methods) for path, methods in schema["paths"].items())
    return schema, [(re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "/?"), methods) for path, methods in paths]


def check_call(method: str, path: str, body: str | None = None) -> None:
    schema, known = operations()
    methods = [each for pattern, each in known if pattern.fullmatch(path)]
    [described] = [each[method.lower()] for each in methods if method.lower() in each][:1]
    if body is not None:
        wanted = described["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.validate(json.loads(body), {**wanted, "components": schema["components"]})


def read_curl(command: str) -> tuple[str, str, str | None]:
    """Return the method, the path below /api/v1 and the JSON body of a call."""
    command = re.sub(r"\$\(sha256sum [^)]*\)", "0" * 64, command.replace("\\\n", " "))
    words = shlex.split(re.sub(r"\$\([^)]*\)", "1", command))
    values = dict(pairwise(words))
    body = next((value for word, value in values.items() if word in BODY), None)
    sends = body is not None or "--data-binary" in words
    method = next((value for word, value in values.items() if word in METHOD), "POST" if sends else "GET")
    [address] = [word for word in words if "/api/v1/" in word]
    return method, "/" + address.partition("/api/v1/")[2].partition("?")[0], body


def test_every_call_that_a_page_shows_is_one_of_the_schema() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    shown: list[tuple[str, str, str | None]] = []
    for page in pages:
        text = page.read_text()
        shown += [
            (method, path, None) for method, path in CALL.findall(FENCE.sub("", text)) if not ELSEWHERE.match(path)
        ]
        for call, block in BLOCK.findall(text):
            shown += [read_curl(command) for command in CURL.findall(block)]
            shown += [(*call.split(), block)] if call else []
    assert len(shown) > 120
    assert sum(body is not None for *_, body in shown) >= 7
    for call in shown:
        try:
            check_call(*call)
        except (ValueError, KeyError, jsonschema.ValidationError) as error:
            pytest.fail(f"{call}: {error}")


def test_every_command_of_make_and_of_manage_py_exists() -> None:
    text = "".join(block for page in PAGES for block in FENCE.findall(page.read_text()))
    targets, commands = (
        set(re.findall(pattern, text, re.MULTILINE)) for pattern in (r"^make (\w+)", r"manage\.py (\w+)")
    )
    assert targets > {"up", "test"}
    assert targets <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert commands > {"migrate", "add_person"}
    assert commands <= set(get_commands())


def test_a_call_that_is_not_served_is_noticed() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        check_call("POST", "/runs/7/")
    with pytest.raises(jsonschema.ValidationError, match="no_such_field"):
        check_call("POST", "/runs/", '{"suite": "sample", "endpoint": "local", "no_such_field": 1}')


def test_the_examples_that_check_a_signature_take_a_true_one_alone() -> None:
    secret = "whsec_" + b64encode(bytes(range(32))).decode()
    page = (ROOT / "docs" / "operations.md").read_text()
    examples = "".join(re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    names: dict[str, Any] = {}
    exec(compile(examples.replace("whsec_…", secret), "operations.md", "exec"), names)  # noqa: S102  # our own page
    body, at = b'{"type":"run.failed","data":{"url":"/runs/57/"}}', datetime.now(UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_1", at, body.decode()),
    }
    assert names["receive"](headers, body) == 204
    assert names["receive"](headers, body + b" ") == 401
    assert names["is_ours"](secret, headers, body)
    assert not names["is_ours"](secret, headers, body + b" ")
    assert not names["is_ours"](secret, headers | {"webhook-timestamp": "1"}, body)
