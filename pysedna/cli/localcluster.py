"""`pysedna localcluster`: the embedded API server as a process of its own."""

import shutil
import signal
from pathlib import Path

import click

from pysedna.cli.common import Failure, log_level_option, one_line_errors, set_up_logging

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command("localcluster")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 takes a free one.")
@click.option("--state", type=click.Path(dir_okay=False), help="SQLite file that keeps the objects.")
@click.option("--nodes", default="node-1", metavar="A,B", help="Names of the simulated nodes, '' for none.")
@click.option("--kubeconfig-out", type=click.Path(dir_okay=False), help="Write a kubeconfig there as well.")
@log_level_option
def command(host: str, port: int, state: str | None, nodes: str, kubeconfig_out: str | None, log_level: str) -> None:
    """Run an API server with garbage collection, Deployments and simulated nodes until Ctrl-C.

    It is for tests and for trying things out: it has no authentication.
    """
    set_up_logging(log_level)
    try:
        from pysedna.localcluster import LocalCluster
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    from pysedna.localcluster import LocalClusterError

    # Blocked and then waited for: a handler that wakes an event can miss a signal that comes just before the wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    names = [name.strip() for name in nodes.split(",") if name.strip()]
    try:
        try:
            made = LocalCluster(host=host, port=port, state=state, nodes=names)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        with one_line_errors(), made as cluster:
            kubeconfig = Path(cluster.kubeconfig)
            if kubeconfig_out is not None:
                kubeconfig = Path(kubeconfig_out)
                shutil.copyfile(cluster.kubeconfig, kubeconfig)
            click.echo(f"listening on {cluster.address}; try: kubectl --kubeconfig {kubeconfig} get nodes")
            signal.sigwait(STOP_SIGNALS)
            # A second Ctrl-C while it stops is answered at once.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    except LocalClusterError as error:
        raise Failure(str(error)) from error
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
