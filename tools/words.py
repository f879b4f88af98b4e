"""Find names that a reader must learn first, and sentences of the documents that must be read twice.

Names: words of no field, and functions called `of_…`. `docs/glossary.md` has better ones. Fields of contracts keep the
names that clients know, and migrations are never edited. Documents: phrases that have a plain form, and sentences of
more than 35 words. Templates: the same phrases, house words, and sentences of more than 30 words in visible text.
Docstrings: a first line of more than 100 characters, or with a turn of the house dialect. Golden sentences: the same
phrases, and more than 25 words.
`make check` starts this; `python tools/words.py PATH …` checks those files alone.
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
GOLDEN, MAX_GOLDEN_WORDS = "tests/core/golden/sentences.md", 25  # what pages say
ASIDE = re.compile(r"\([^()]*\)|: evalboard .*")  # numbers and commands, which are no words of a golden sentence
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
# On pages these too; the documents define what is ours before they use it.
HOUSE_WORDS = {
    r"by itself": "automatically, on its own",
    r"decod\w+ alone|batch class alone": "batch size 1",
    r"resolves?": "detects changes of N points",
    r"looks?(?= (of|at which|after))": "checkpoint",
    r"guards?": "range limit",
    r"treatments?": "what is judged",
    r"arms?": "condition",
    r"deficits?": "gap to the top choice",
    r"(?<!drift )onsets?": "where drift starts",
    r"rest(s|ing)": "paused",
    r"draws?": "sample",
    r"(is|are|each) worth": "one case is N points",
    r"settled?": "decided",
    r"stands?|lies": "is",
    r"asked for": "requested, created",
    r"at work": "running",
    r"under way": "in progress",
    r"what came of": "result",
    r"as wanted|as found": "set, actual",
    r"of ours": "your own",
}
BANNED_PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)
BANNED_ON_PAGES = re.compile(rf"\b({'|'.join(PHRASES | HOUSE_WORDS)})\b", re.IGNORECASE)
MAX_WORDS_ON_PAGES = 30
DIALECT = re.compile(
    r"(?i)\b(of others|others run|held against|told apart|laid to|all else|by itself|no sign of|(one|same) computation"
    r"|is worth|do(es)? not say|rests?|alone|drawn|arms?|telling|onsets?|deficits?|strays?|guards?|treatments?"
    r"|settl(e|es|ed|ing)|stands?|holds?|lies|beside|anew|nobody|whoever|somebody)\b"
)
NO_DIALECT = re.compile(r"`[^`]*`|\bREST\b|docs/\S+")  # code, the API, and links to pages
MAX_FIRST_LINE = 100
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
LEFT_OUT = re.compile(r"^```.*?^```|<!-- \w[^>]* of .*?<!-- end -->|<!--.*?-->", re.MULTILINE | re.DOTALL)
NOT_SHOWN = re.compile(r"\{#.*?#\}|\{% comment.*?endcomment %\}|<!--.*?-->|<(script|style|pre)\b.*?</\1>", re.DOTALL)
SHOWN_ATTRIBUTE = re.compile(r"(?:title|aria-label|placeholder)=\"((?:\{[{%].*?[%}]\}|[^\"{])*)\"")
INLINE = re.compile(
    r"</?(?:a|abbr|b|bdi|code|em|i|kbd|span|strong|time|wbr)\b(?:\{[{%].*?[%}]\}|[^>{])*>|\{% (?:url|term) .*?%\}"
)
TEXT_END = re.compile(r"\{%.*?%\}|<(?:\{[{%].*?[%}]\}|[^>{])*>", re.DOTALL)
DOCUMENTS = ("docs/*.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "tests/rig/README.md")


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


def is_dialect(line: str) -> bool:
    """Tell whether a line has a turn of the house dialect, outside of code and links."""
    return DIALECT.search(NO_DIALECT.sub("", line)) is not None


def unplain_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each docstring whose first line is too long or in the house dialect."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and (words := ast.get_docstring(node)):
            first = words.splitlines()[0]
            if len(first) > MAX_FIRST_LINE:
                yield node.body[0].lineno, f"{len(first)} characters in the first line, {MAX_FIRST_LINE} at most"
            if is_dialect(first):
                yield node.body[0].lineno, f"house dialect: {first}"


def unplain_sentences(text: str, most: int = MAX_WORDS) -> Iterator[tuple[int, str]]:
    """Yield line and fault of each sentence of a page that is too long or has a banned phrase.

    Code counts as one word in a sentence. Blocks of code, and what a tool writes between `<!-- … of … -->` and
    `<!-- end -->`, are left out. In a cell of a table a colon or semicolon ends a sentence too.
    """
    for line, part in _parts(LEFT_OUT.sub(lambda block: "\n" * block[0].count("\n"), text)):
        plain = re.sub(r"[*\"“”]", "", re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", part)))
        for sentence in re.split(r"(?<=[.!?:;] )" if part.startswith("|") else r"(?<=[.!?] )", plain):
            n_words = len(re.findall(r"\S*\w\S*", sentence))
            if n_words > most:
                yield line, f"{n_words} words in one sentence: {sentence.strip('| ')[:60]}…"
        for phrase in BANNED_PHRASE.finditer(plain):
            yield line, f"{phrase[0]!r}: {_better(phrase[0])}"


def unplain_texts(template: str) -> Iterator[tuple[int, str]]:
    """Yield line and fault of each visible text of a template that is too long or has a house word.

    A tag ends a text unless it is within a sentence, as `<b>` is. A branch of a condition is a text of its own.
    """
    whole = NOT_SHOWN.sub(lambda part: "\n" * part[0].count("\n"), template)
    texts = [(match.start(1), match[1]) for match in SHOWN_ATTRIBUTE.finditer(whole)]
    inline = re.sub(r"\{\{.*?\}\}", lambda value: "v" * len(value[0]), INLINE.sub(lambda tag: " " * len(tag[0]), whole))
    texts += [(match.start(), match[0]) for match in re.finditer(r"[^\0]+", TEXT_END.sub(_blank, inline))]
    for at, text in texts:
        line = whole.count("\n", 0, at + len(text) - len(text.lstrip())) + 1
        n_words = max(len(re.findall(r"\S*\w\S*", each)) for each in re.split(r"(?<=[.!?:;]) ", text))
        if n_words > MAX_WORDS_ON_PAGES:
            yield line, f"{n_words} words in one sentence: {' '.join(text.split())[:60]}…"
        for phrase in BANNED_ON_PAGES.finditer(text):
            yield line, f"{phrase[0]!r}: {_better(phrase[0])}"


def _blank(part: re.Match[str]) -> str:
    return "\0" * len(part[0])


def _better(phrase: str) -> str:
    words = PHRASES | HOUSE_WORDS
    return next(words[banned] for banned in words if re.fullmatch(banned, phrase, re.IGNORECASE))


def unplain_golden(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and fault of each golden sentence that is too long or has a banned phrase."""
    for number, line in enumerate(text.splitlines(), 1):
        _, _, sentence = line.partition(": ") if line.startswith("- ") else ("", "", "")
        for _, fault in unplain_sentences(ASIDE.sub("", sentence), MAX_GOLDEN_WORDS):
            yield number, fault


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield (first line, text on one line) of each paragraph, list item and cell of a page."""
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
    """Print every fault in the named files, by default the product and its pages; return the exit status."""
    places = names or ["evalboard", "runs", "frontend", "worker", "tools", "deploy", "manage.py", *DOCUMENTS, GOLDEN]
    listed = subprocess.run(["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    n_banned = 0
    for name in listed.stdout.split():
        if name == GOLDEN:
            for line, fault in unplain_golden((ROOT / name).read_text()):
                print(f"{name}:{line}: {fault}")
                n_banned += 1
            continue
        if name.endswith(".md") and (names or "/decisions/" not in name):
            for line, fault in unplain_sentences((ROOT / name).read_text()):
                print(f"{name}:{line}: {fault}")
                n_banned += 1
        if name.endswith(".html"):
            for line, fault in unplain_texts((ROOT / name).read_text()):
                print(f"{name}:{line}: {fault}")
                n_banned += 1
        if not name.endswith(".py") or name.startswith(NEVER_EDITED):
            continue
        source = (ROOT / name).read_text()
        for line, fault in unplain_docstrings(source):
            print(f"{name}:{line}: {fault}: say in plain words what it returns or does")
            n_banned += 1
        is_fixed = name.startswith(HOLDS_FIXED_FIELDS)
        for line, word in banned_names(source, has_fixed_fields=is_fixed):
            print(f"{name}:{line}: {word!r} names nothing: name what it holds or returns (CONTRIBUTING, Words)")
            n_banned += 1
    return min(n_banned, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
