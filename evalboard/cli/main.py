"""The `evalboard` command. docs/cli.md describes each command and exit code; a test keeps it so."""

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from evalboard import wings
from evalboard.cli import (
    audit,
    baseline,
    case,
    compare,
    diff,
    endpoint,
    export,
    follow,
    imports,
    labels,
    probe,
    profile,
    release,
    replay,
    rollouts,
    run,
    schedule,
    scorer,
    suite,
    trace,
    vendors,
    verify_release,
    wait,
)
from evalboard.cli.errors import FAILED, FAULT, INTERRUPTED, OUTPUT_CLOSED, WRONG_USE, exit_code
from evalboard.cli.machine import scheduler, signin, tour, up, worker_app
from evalboard.cli.output import OutputClosed, OutputLost, decide, watch_output
from evalboard.client.program import as_typed
from evalboard.core.errors import EvalboardError

NEED_THE_PRODUCT = "Commands of a server, which need more than `pip install evalboard`"


class Commands(TyperGroup):
    """Commands by name; `--help` of one loads only its own module."""

    def get_help_option(self, ctx: Any) -> TyperOption | None:
        option = super().get_help_option(ctx)
        if option is not None:
            # Without a default typer would have pydantic check that no --help was given here, and load it for that.
            option.default = False
        return option

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first sentence of every command, and none of them cut off at the line's end.

        The commands that `pip install evalboard` does not bring have a section of their own.
        """
        rows: dict[str, list[tuple[str, str]]] = {"Commands": [], NEED_THE_PRODUCT: []}
        for name in self.list_commands(ctx):
            section = getattr(self.commands[name], "rich_help_panel", None)
            row = (name, self.commands[name].get_short_help_str(limit=200))
            rows[section if section in rows else "Commands"].append(row)
        for section, listed in rows.items():
            if listed:
                with formatter.section(section):
                    formatter.write_dl(listed)


app = typer.Typer(
    name="evalboard",
    cls=Commands,
    help="Evals you can bet a release on.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # drawing help with rich takes as long to load as all the rest
)
app.command()(run.run)
app.command()(wait.wait)
app.command()(compare.compare)
app.command(cls=diff.DiffCommand)(diff.diff)
app.command()(trace.trace)
app.command()(release.release)
app.command()(release.settle)
app.command()(release.rerun)
app.command()(case.case)
app.command()(replay.replay)
app.command()(labels.labels)
app.command()(probe.probe)
app.command()(vendors.vendors)
app.command()(rollouts.rollouts)
app.command("verify-release")(verify_release.verify_release)
app.command()(export.export)
app.command()(follow.follow)
app.command()(audit.comment)
app.command()(audit.audit)
app.command("import")(imports.import_logs)
for on_the_machine in (up, signin, tour, scheduler):
    app.command(rich_help_panel=NEED_THE_PRODUCT)(on_the_machine)
app.add_typer(worker_app, name="worker", cls=Commands, rich_help_panel=NEED_THE_PRODUCT)
app.add_typer(suite.app, name="suite", cls=Commands)
app.add_typer(scorer.app, name="scorer", cls=Commands)
app.add_typer(endpoint.app, name="endpoint", cls=Commands)
app.add_typer(baseline.app, name="baseline", cls=Commands)
app.add_typer(profile.app, name="profile", cls=Commands)
app.add_typer(schedule.app, name="schedule", cls=Commands)
for wing in wings.load("evalboard.cli.{}"):
    wing.register(app, Commands)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    sys.exit(_run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: Sequence[str]) -> int:
    with watch_output() as out:
        code = _call(arguments)
        if out is not None and out.lost:
            _print_error(out.lost)
            return code if out.is_verdict else code or FAILED
        return code


def _call(arguments: Sequence[str]) -> int:
    command = typer.main.get_command(app)
    try:
        code = command.main(args=list(arguments), prog_name="evalboard", standalone_mode=False)
    except OutputLost:
        return FAILED
    except EvalboardError as problem:
        _print_error(problem.detail)
        return exit_code(problem)
    except typer.TyperException as wrong:  # whatever is wrong with the command line itself
        _print_error(wrong.format_message())
        return WRONG_USE
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OutputClosed:
        return OUTPUT_CLOSED
    except Exception as fault:  # noqa: BLE001  Python would exit with 1, which means no-ship
        decide()
        traceback.print_exc()
        _print_error(f"This is a fault in Evalboard: {type(fault).__name__}: {fault}")
        return FAULT
    return code if isinstance(code, int) else 0


def _print_error(sentence: str) -> None:
    """Print one sentence on stderr, on one line. The exit code is decided."""
    decide()
    if sentence:
        typer.echo(f"evalboard: {as_typed(' '.join(sentence.split()))}", err=True)
