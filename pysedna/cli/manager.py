"""`pysedna manager`: the Global Manager, with the controllers that are installed under `pysedna.controllers`.

A controller is an entry point of that group: a function `setup(manager, *, options, sink)` that adds itself to the
manager. So another distribution adds a controller by being installed.
"""

import logging
import os
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NoReturn

import click

from pysedna.cli.common import Failure, connect, log_level_option, one_line_errors, set_up_logging

GROUP = "pysedna.controllers"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
Setup = Callable[..., object]


def _namespace(context: click.Context, option: click.Parameter, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    for name in (value,) if isinstance(value, str) else value:
        if not _LABEL.fullmatch(name):
            raise click.BadParameter(f"{name!r} is no name for a namespace")
    return value


def _lease(context: click.Context, option: click.Parameter, value: str) -> str:
    if not _SUBDOMAIN.fullmatch(value):
        raise click.BadParameter(f"{value!r} is no name for a Lease")
    return value


def _address(context: click.Context, option: click.Parameter, value: str) -> str:
    from pysedna.controller.health import parse_address

    try:
        if value:
            parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    return value


@click.command("manager")
@click.option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False), help="Default: in-cluster, else as kubectl."
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    callback=_namespace,
    help="Act there only (repeatable). Default: everywhere.",
)
@click.option("--controllers", default="all", metavar="all|NAME,...", help="Which controllers to run.")
@click.option("--leader-elect/--no-leader-elect", default=True, help="Act only while holding the Lease.")
@click.option("--lease-name", default="pysedna-manager", callback=_lease, help="Name of the Lease.")
@click.option("--lease-namespace", default="default", callback=_namespace, help="Namespace of the Lease.")
@click.option(
    "--lease-duration", type=float, default=15.0, metavar="SECONDS", help="A lease unrenewed so long is free."
)
@click.option("--renew-deadline", type=float, default=10.0, metavar="SECONDS", help="The leader gives up after it.")
@click.option("--retry-period", type=float, default=2.0, metavar="SECONDS", help="Between two tries of a candidate.")
@click.option("--identity", help="Name in the Lease. Default: host name, process id and a random part.")
@click.option(
    "--http",
    default="127.0.0.1:8080",
    metavar="HOST:PORT",
    callback=_address,
    help="Health and metrics; '' serves none.",
)
@click.option("--local-controller-server", metavar="URL", help="Where workers reach their local controller.")
@log_level_option
def command(
    kubeconfig: str | None,
    namespaces: tuple[str, ...],
    controllers: str,
    leader_elect: bool,
    lease_name: str,
    lease_namespace: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    identity: str | None,
    http: str,
    local_controller_server: str | None,
    log_level: str,
) -> None:
    """Run the Sedna controllers until SIGTERM or Ctrl-C."""
    setups = load_controllers(controllers)
    set_up_logging(log_level)

    import leaderelection
    from informers import ObjectKey
    from informers.metrics import RequestMetrics
    from pysedna.controller import LeaderElection, LeadershipLost, Manager, ShutdownTimeout
    from pysedna.controller.metrics import CollectorRegistry
    from pysedna.jobs import JobOptions

    election = None
    if leader_elect:
        config = leaderelection.Config(lease_duration, renew_deadline, retry_period)
        try:
            config.validate()
        except leaderelection.ConfigError as error:
            raise click.UsageError(str(error)) from error
        election = LeaderElection(ObjectKey(lease_namespace, lease_name), config, identity)
    options = JobOptions(local_controller_server) if local_controller_server else JobOptions()
    registry = CollectorRegistry()
    with one_line_errors(), connect(kubeconfig, on_request=RequestMetrics(registry)) as client:
        manager = Manager(
            client,
            name="pysedna-manager",
            registry=registry,
            namespaces=namespaces or None,
            leader_election=election,
            http=http or None,
        )
        for setup in setups:
            setup(manager, options=options, sink=None)
        try:
            manager.run()
        except (LeadershipLost, ShutdownTimeout) as error:
            _end_at_once(error)


def _end_at_once(error: Exception) -> NoReturn:
    # Work of this process may still be under way that must not act any more, so nothing is waited for.
    Failure(str(error)).show()
    logging.shutdown()
    sys.stderr.flush()
    os._exit(1)


def load_controllers(names: str) -> list[Setup]:
    """The setup functions of the controllers named, `all` for every one installed; raises UsageError or Failure."""
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    wanted = sorted(installed) if names == "all" else [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in installed]
    if unknown or not wanted:
        choice = ", ".join(sorted(installed)) or "none"
        raise click.UsageError(f"no such controller: {', '.join(unknown) or names!r} (installed: {choice})")
    return [_load(installed[name]) for name in dict.fromkeys(wanted)]


def _load(entry: EntryPoint) -> Setup:
    try:
        setup: Any = entry.load()
    except Exception as error:  # a foreign module may raise anything on import, and its name is what helps
        raise Failure(f"controller {entry.name} ({entry.value}) cannot be loaded: {error}") from error
    if not callable(setup):
        raise Failure(f"controller {entry.name}: {entry.value} is not a function")
    return setup  # type: ignore[no-any-return]
