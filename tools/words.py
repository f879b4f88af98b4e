"""Find names that a reader must learn first, and sentences of the documents that must be read twice.

Names: words of no field, and functions called `of_…`. `docs/glossary.md` has better ones. Fields of contracts keep the
names that clients know, and migrations are never edited. Documents: phrases that have a plain form, and sentences of
more than 35 words. `make check` starts this; `python tools/words.py PATH …` checks those files alone.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BANNED = frozenset({"found", "asked", "said", "told", "kept", "held"})
BANNED_STARTS = ("of_", "MOST_", "LEAST_")
HOLDS_FIXED_FIELDS = "evalboard/contract/"
NEVER_EDITED = "runs/migrations/"
MAX_WORDS = 35  # of a sentence; 25 is better
PHRASES = {
    r"(servers?|endpoints?|engines?|logs?) of others|others run": "external server, external endpoint",
    r"(endpoint|server|worker|it|that) rests|let rest": "is paused",
    r"rests? on": "depends on, uses",
    r"held against|holds? (\w+ ){1,2}against": "compared with",
    r"(told|tells?) (\w+ )?apart": "distinguished",
    r"(laid|lays?) (\w+ ){0,6}to the": "attributed to",
    r"by chance alone": "expect about N by chance",
    r"others like these": "new cases like these",
    r"all else is": "settings that stay fixed",
    r"let go": "vary, change",
    r"telling cases?": "cases that differ",
    r"no sign of": "logprobs agree",
    r"anew": "again",
    r"beside": "next to, with",
    r"whoever|somebody|nobody": "name the person or the program",
    r"stands? (in|on|there|here|above|below|at|with|beside)": "is, has",
    r"(logs?|servers?) do(es)? not say": "is not in the log, is unknown",
}
BANNED_PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)
LEFT_OUT = re.compile(r"^```.*?^```|<!-- \w[^>]* of .*?<!-- end -->|<!--.*?-->", re.MULTILINE | re.DOTALL)
DOCUMENTS = ("docs/*.md", "README.md", "SECURITY.md", "tests/rig/README.md")
STILL_TO_DO = tuple(f"docs/{page}.md" for page in ("cli", "divergence", "glossary", "imports", "releases", "verdict"))


def banned_names(source: str, *, has_fixed_fields: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each definition that has a banned name.

    has_fixed_fields: annotated fields of classes may be called anything.
    """
    tree = ast.parse(source)
    fields = {
        id(each.target)
        for node in ast.walk(tree)
        if has_fixed_fields and isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        for name in _defined(node):
            bare = name.lstrip("_")
            if id(node) not in fields and (bare in BANNED or bare.startswith(BANNED_STARTS)):
                yield node.lineno, name  # type: ignore[attr-defined]


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
    return []


def unplain_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each sentence of a Markdown page that is too long or has a banned phrase.

    Code counts as one word in a sentence. Blocks of code, and what a tool writes between `<!-- … of … -->` and
    `<!-- end -->`, are left out. In a cell of a table a colon or semicolon ends a sentence too.
    """
    for line, part in _parts(LEFT_OUT.sub(lambda block: "\n" * block[0].count("\n"), text)):
        plain = re.sub(r"[*\"“”]", "", re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", part)))
        for sentence in re.split(r"(?<=[.!?:;] )" if part.startswith("|") else r"(?<=[.!?] )", plain):
            n_words = len(re.findall(r"\S*\w\S*", sentence))
            if n_words > MAX_WORDS:
                yield line, f"{n_words} words in one sentence: {sentence.strip('| ')[:60]}…"
        for phrase in BANNED_PHRASE.finditer(plain):
            better = next(
                better for banned, better in PHRASES.items() if re.fullmatch(banned, phrase[0], re.IGNORECASE)
            )
            yield line, f"{phrase[0]!r}: {better}"


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line of each paragraph, list item and cell of a page, and its words on one line."""
    gathered: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if gathered and re.match(r"\s*([*#|-]|\d+\.|$)", line):
            yield number - len(gathered), " ".join(each.strip() for each in gathered)
            gathered = []
        if line.startswith("|"):
            yield from ((number, f"|{cell}") for cell in line.strip("|").split(" | "))
        elif line.strip():
            gathered.append(line)


def main(names: list[str]) -> int:
    """Print every fault in the named files, or in the product and its documents; return how many, at most 1."""
    places = names or ["evalboard", "runs", "frontend", "worker", "tools", "deploy", "manage.py", *DOCUMENTS]
    listed = subprocess.run(["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    n_banned = 0
    for name in listed.stdout.split():
        if name.endswith(".md") and (names or (name not in STILL_TO_DO and name.count("/decisions/") == 0)):
            for line, fault in unplain_sentences((ROOT / name).read_text()):
                print(f"{name}:{line}: {fault}")
                n_banned += 1
        if not name.endswith(".py") or name.startswith(NEVER_EDITED):
            continue
        is_fixed = name.startswith(HOLDS_FIXED_FIELDS)
        for line, word in banned_names((ROOT / name).read_text(), has_fixed_fields=is_fixed):
            print(f"{name}:{line}: {word!r} names nothing: name what it holds or returns (CONTRIBUTING, Words)")
            n_banned += 1
    return min(n_banned, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
