"""The `evalboard` command. docs/cli.md describes each command and exit code; a test keeps it so."""

import sys
from collections.abc import Sequence

import typer

from evalboard.cli import baseline, compare, export, importing, probe, release, replay, run, suite, wait
from evalboard.cli.errors import INTERRUPTED, WRONG_USE, CommandError
from evalboard.cli.signin import signin
from evalboard.cli.up import up
from evalboard.cli.worker import scheduler, worker

app = typer.Typer(
    name="evalboard",
    help="Evals you can bet a release on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(up)
app.command()(signin)
app.command()(run.run)
app.command()(wait.wait)
app.command()(compare.compare)
app.command()(release.release)
app.command()(replay.replay)
app.command()(probe.probe)
app.command()(export.export)
app.command("import")(importing.import_logs)
app.command()(worker)
app.command()(scheduler)
app.add_typer(suite.app, name="suite")
app.add_typer(baseline.app, name="baseline")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(_code(sys.argv[1:] if arguments is None else list(arguments)))


def _code(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    try:
        code = command.main(args=list(arguments), prog_name="evalboard", standalone_mode=False)
    except CommandError as problem:
        _tell(str(problem))
        return problem.exit_code
    except typer.TyperException as wrong:  # whatever is wrong with the command line itself
        _tell(wrong.format_message())
        return WRONG_USE
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _tell(words: str) -> None:
    """One sentence on stderr, on one line."""
    if words:
        typer.echo(f"evalboard: {' '.join(words.split())}", err=True)
