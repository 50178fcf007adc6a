"""What the subcommands share: expected errors as one line, the client from a kubeconfig, logs on stderr."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from informers import Client
    from informers.transport import RequestTrace

F = TypeVar("F", bound=Callable[..., object])

LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"


class Failure(click.ClickException):
    """An expected failure: one line on stderr, exit code 1."""

    def show(self, file: object = None) -> None:
        """Prints `error: ...` on stderr, whatever is asked for."""
        click.echo(f"error: {' '.join(self.message.split())}", err=True)


def log_level_option(command: F) -> F:
    """Adds `--log-level` to a command."""
    option = click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", help="Least level logged.")
    return option(command)


def set_up_logging(level: str) -> None:
    """Logs of this process go to stderr from now on."""
    logging.basicConfig(level=level.upper(), format=LOG_FORMAT, stream=sys.stderr)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turns the named errors of our packages, and those of the operating system, into a Failure."""
    from informers import InformersError
    from leaderelection import ElectionError
    from pysedna.controller import ControllerError

    try:
        yield
    except (InformersError, ElectionError, ControllerError, OSError) as error:
        raise Failure(str(error) or type(error).__name__) from error


def connect(
    kubeconfig: str | None,
    context: str | None = None,
    *,
    on_request: "Callable[[RequestTrace], None] | None" = None,
) -> "Client":
    """A client from the kubeconfig named; without one in-cluster, else from $KUBECONFIG or ~/.kube/config.

    `on_request` is told of each request.
    """
    from informers import Client

    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Client.in_cluster(on_request=on_request)
    return Client.from_kubeconfig(kubeconfig, context, on_request=on_request)
