"""Read one side of a comparison: a log, a folder, or several logs that are its repeats."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from evalboard.core.archive import ArchiveDamaged, ReleaseBundle, RunArchive, find_kind, reading
from evalboard.core.digest import digest_json
from evalboard.core.errors import InvalidInput
from evalboard.core.garbage import without_garbage_search
from evalboard.importers import formats
from evalboard.importers.paths import STDIN, open_logs
from evalboard.importers.records import LoggedCase, LoggedResponse, LoggedRun
from evalboard.logged.archived import add_archive
from evalboard.logged.memory import LogRun, LogStore
from evalboard.logged.runs import digest_of_files
from evalboard.wording.numbers import counted, listed

SHOWN = 8  # runs that a refusal lists, and files that a note does
MIN_AT_ONCE_BYTES, MAX_AT_ONCE_BYTES = 4 << 20, 64 << 20  # of a side that is read at the same time as the other


@dataclass(frozen=True, slots=True)
class NamedLog:
    """A run out of a log. name: as people call the log. source: the digest of its files."""

    name: str
    source: str
    logged: LoggedRun

    def add_to(self, store: LogStore) -> LogRun:
        return store.add(self.logged, source=self.source)


@dataclass(frozen=True, slots=True)
class NamedArchive:
    """An archive of a run of Evalboard. name: as people call it."""

    name: str
    path: Path

    def add_to(self, store: LogStore) -> LogRun:
        with self._open() as (archive, source):
            return add_archive(store, archive, source=source)

    def split(self) -> "SplitRun":
        """Return who answered the run."""
        with self._open() as (archive, _):
            manifest = archive.manifest
            prints = {each["digest"]: each["label"] for each in manifest["fingerprints"]}
            models = {each["digest"]: each["name"] for each in manifest["models"]}
            buckets = {
                each["id"]: (prints[each["fingerprint"]], "", models[each["model"]]) for each in manifest["buckets"]
            }
            rows = (row for row in archive.responses() if not row.row["error"])
            parts = _count_shares((buckets[row.row["provenance"]["bucket"]], row.score) for row in rows)
            return SplitRun(self.name, manifest["suite"]["slug"], manifest["run"].get("tool") or "Evalboard", (), parts)

    @contextmanager
    def _open(self) -> Iterator[tuple[RunArchive, str]]:
        """Open the archive; yield it with its digest. What is wrong with it is said with its name."""
        try:
            with self.path.open("rb") as file, reading("it is not what it should be"):
                yield RunArchive(file), hashlib.file_digest(file, "sha256").hexdigest()
        except ArchiveDamaged as problem:
            raise ArchiveDamaged(f"{self.name}: {problem.detail}") from problem


def read_log(path: Path, *, log_format: str = formats.AUTO, scale: str = "") -> list[NamedLog]:
    """Return the runs of a log: a file, `-`, or a folder of one log. Raises InvalidInput."""
    if str(path) != STDIN and not path.exists():
        raise InvalidInput(f"{path} does not exist.", fields={str(path): "does not exist"})
    with open_logs([path]) as opened, without_garbage_search():
        name, runs = formats.read_logs(opened.files, format=log_format, scale=scale)
        source = digest_of_files(opened.files, name, scale=scale)
    n = len(opened.left_out) - SHOWN
    more = f" and {counted(n, 'more file')}" if n > 0 else ""
    notes = [f"No known format fits {', '.join(opened.left_out[:SHOWN])}{more}: left out."] if opened.left_out else []
    return [NamedLog(str(path), source, replace(logged, notes=(*logged.notes, *notes))) for logged in runs]


def read_sides(
    sides: Sequence[Sequence[Path]], *, log_format: str = formats.AUTO, scale: str = ""
) -> Iterator[NamedLog | NamedArchive]:
    """Yield the run of each side. Raises InvalidInput.

    Two small sides are read at the same time. Large ones are read one after the other, to keep one in memory.
    """
    sizes = [sum(_weigh(_split_number(path)[0]) for path in side) for side in sides]
    if len(sides) < 2 or max(sizes) > MAX_AT_ONCE_BYTES or min(sizes) < MIN_AT_ONCE_BYTES:
        yield from (read_side(side, log_format=log_format, scale=scale) for side in sides)
        return
    with ProcessPoolExecutor(len(sides) - 1) as others:
        later = [others.submit(read_side, side, log_format=log_format, scale=scale) for side in sides[1:]]
        yield read_side(sides[0], log_format=log_format, scale=scale)
        yield from (side.result() for side in later)


def find_archive(path: Path) -> NamedArchive | None:
    """Return the archive at a path, or the only one in a folder; None if there is none.

    Raises InvalidInput for an archive of another kind, and for a folder with several.
    """
    if path.is_dir():
        files = [each for each in sorted(path.iterdir()) if each.is_file() and each.name[0] != "."]
        archives = [each for each in files if each.suffix == ".zip" and _read_kind(each) == RunArchive.kind]
        if not archives:
            return None
        if len(files) > 1:
            problem = f"{path} holds {counted(len(archives), 'archive')} of runs in {counted(len(files), 'file')}"
            raise InvalidInput(f"{problem}, and a side is one run: name it, as in {archives[0]}.")
        return NamedArchive(str(archives[0]), archives[0])
    file, number = _split_number(path)
    kind = _read_kind(file) if file.is_file() else ""
    if kind == ReleaseBundle.kind:
        what = "is a bundle of a release, which holds no whole run: see it with `evalboard verify-release`"
        raise InvalidInput(f"{file} {what}, and compare the archives of its runs, `evalboard export RUN`.")
    if kind == RunArchive.kind and number is not None:
        raise InvalidInput(f"{file} holds one run: leave #{number} out.")
    return NamedArchive(str(file), file) if kind == RunArchive.kind else None


def _read_kind(path: Path) -> str:
    with path.open("rb") as file:
        return find_kind(file)


def read_side(paths: Sequence[Path], *, log_format: str = formats.AUTO, scale: str = "") -> NamedLog | NamedArchive:
    """Return the one run of a side. Several logs are repeats of one another. Raises InvalidInput."""
    archives = [archive for path in paths if (archive := find_archive(path)) is not None]
    if archives and len(paths) > 1:
        raise InvalidInput(f"{archives[0].name} has all repeats of its run: give it as the only file of a side.")
    if archives:
        return archives[0]
    logs = []
    for path in paths:
        file, number = _split_number(path)
        runs = read_log(file, log_format=log_format, scale=scale)
        if number is None and len(runs) == 1:
            logs += runs
        elif number is None or not 1 <= number <= len(runs):
            choices = ", ".join(
                f"#{at} {each.logged.slug} of {each.logged.model or 'an unnamed model'}"
                for at, each in enumerate(runs[:SHOWN], start=1)
            )
            problem = f"{file} holds {counted(len(runs), 'run')} ({choices}), and a side is one run"
            raise InvalidInput(f"{problem}: name it, as in {file}#1.", fields={str(path): problem})
        else:
            logs.append(replace(runs[number - 1], name=str(path)))
    return logs[0] if len(logs) == 1 else _join(logs)


def _split_number(path: Path) -> tuple[Path, int | None]:
    """Return a path and the number of its run, as in log.json#2; None where none is named."""
    text, _, number = str(path).rpartition("#")
    if path.exists() or not text or not number.isascii() or not number.isdigit():
        return path, None
    return Path(text), int(number[:9])


def _weigh(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder; 0 of what is neither."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files if each.is_file())


def _join(logs: Sequence[NamedLog]) -> NamedLog:
    """Return logs as one: the repeats of the second follow those of the first."""
    first, n_before = logs[0].logged, 0
    cases: dict[str, LoggedCase] = {}
    responses: list[LoggedResponse] = []
    differs = [name for name in ("model", "tool", "settings") if len({_key(log.logged)[name] for log in logs}) > 1]
    for log in logs:
        if any(cases.get(case.id, case).messages != case.messages for case in log.logged.cases):
            differs.append("prompts")
        cases |= {case.id: case for case in log.logged.cases if case.id not in cases}
        responses += [replace(each, repeat=each.repeat + n_before) for each in log.logged.responses]
        n_before += max(log.logged.count_answers().values(), default=0)
    if differs:
        names = ", ".join(log.name for log in logs)
        what = listed(list(dict.fromkeys(differs)))
        raise InvalidInput(f"{names} are no repeats of one another: they differ in {what}.")
    scorers = tuple(dict.fromkeys(name for log in logs for name in log.logged.scorers))
    joined = replace(
        first,
        cases=tuple(cases.values()),
        responses=tuple(responses),
        scorers=scorers,
        status=max((log.logged.status for log in logs), key=("finished", "incomplete", "failed", "cancelled").index),
        notes=tuple(dict.fromkeys(note for log in logs for note in log.logged.notes)),
    )
    name = f"{logs[0].name} and {len(logs) - 1} more"
    return NamedLog(name, digest_json([log.source for log in logs]), joined)


def _key(logged: LoggedRun) -> dict[str, str]:
    """Return what repeats of one side have in common; each may have a seed of its own."""
    sent = {name: value for name, value in logged.sampling.items() if name != "seed"}
    return {"model": logged.model, "tool": logged.tool, "settings": digest_json(sent)}


@dataclass(frozen=True, slots=True)
class BackendShare:
    """The share of one backend in a log.

    score: in points, the mean over its scored answers; None without any.
    """

    fingerprint: str
    provider: str
    model: str
    n_answers: int
    share: float
    score: float | None
    n_scored: int


@dataclass(frozen=True, slots=True)
class SplitRun:
    """Who answered a run. suite: its slug."""

    name: str
    suite: str
    tool: str
    notes: Sequence[str]
    parts: Sequence[BackendShare]


def split_by_backend(path: Path, *, log_format: str = formats.AUTO, scale: str = "") -> list[SplitRun]:
    """Return who answered each run of a log or an archive, the largest share first. Raises InvalidInput."""
    if (archive := find_archive(path)) is not None:
        return [archive.split()]
    named = ((log.name, log.logged) for log in read_log(path, log_format=log_format, scale=scale))
    return [
        SplitRun(name, logged.slug, logged.tool, logged.notes, _count_shares(_list_answers(logged)))
        for name, logged in named
    ]


def _list_answers(logged: LoggedRun) -> Iterator[tuple[tuple[str, str, str], float | None]]:
    """Yield who gave each answer, as fingerprint, provider and model, and its score."""
    main = logged.scorers[0] if logged.scorers else ""
    for each in logged.responses:
        if each.error:
            continue
        served = each.served_by
        provider = served.parts.get("provider", "") or (
            "" if served.key_from in ("system_fingerprint", "base_url") else served.key
        )
        score = each.scores[main].value if main in each.scores else None
        yield (served.system_fingerprint, provider, served.model or logged.model), score


def _count_shares(answers: Iterable[tuple[tuple[str, str, str], float | None]]) -> list[BackendShare]:
    counts: Counter[tuple[str, str, str]] = Counter()
    scores: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for key, value in answers:
        counts[key] += 1
        if value is not None:
            scores[key].append(value)
    return [
        BackendShare(
            *key,
            n_answers=n,
            share=n / counts.total(),
            score=100 * sum(scores[key]) / len(scores[key]) if scores[key] else None,
            n_scored=len(scores[key]),
        )
        for key, n in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]
