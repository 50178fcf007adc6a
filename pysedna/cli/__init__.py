"""The `pysedna` command: one module a subcommand, and `main`, which turns errors into one line and an exit code.

The subcommands' modules import only click at the top and the rest when they run: two managers start in the demo, and
nobody waits for a web server to print CRDs.
"""

import os
import sys

import click

from pysedna.cli import crds, demo, localcluster, manager

SIGNALLED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="pysedna")
def cli() -> None:
    """Kubernetes controllers in Python, and the Sedna Global Manager built on them."""


for _command in (crds.command, demo.command, localcluster.command, manager.command):
    cli.add_command(_command)


def main() -> None:
    """Entry point: runs the command line and exits with its code (2 for wrong usage, 130 after Ctrl-C)."""
    try:
        code = cli.main(prog_name="pysedna", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        code = SIGNALLED
    except BrokenPipeError:
        _leave_stdout()  # its reader has gone: `pysedna crds | head`
        code = 1
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        _leave_stdout()  # it may be what failed: a full disk
        code = 1
    sys.exit(code)


def _leave_stdout() -> None:
    # What is still buffered must not fail once more when the interpreter flushes it at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
