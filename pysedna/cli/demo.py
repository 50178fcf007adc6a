"""`pysedna demo`: the story of the Sedna controllers, every step checked."""

import click

from pysedna.cli.common import Failure, one_line_errors


@click.command("demo")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Play on this cluster, in a namespace of its own, instead of on an embedded one.",
)
@click.option("--context", help="The kubeconfig's context to use.")
@click.option("--simulate-nodes", is_flag=True, help="With --kubeconfig: run the demo's pods where no kubelet does.")
@click.option(
    "--step-timeout", type=click.FloatRange(min=0), default=20.0, metavar="SECONDS", help="How long a step may wait."
)
def command(kubeconfig: str | None, context: str | None, simulate_nodes: bool, step_timeout: float) -> None:
    """Play the Sedna controllers end to end, with every step checked.

    Exit code 0: every step did what it must. 1: the step that did not is named.
    """
    if kubeconfig is None and (simulate_nodes or context):
        raise click.UsageError("--context and --simulate-nodes need --kubeconfig (the embedded cluster has nodes)")
    try:
        from rich.console import Console

        from pysedna.demo import DemoOptions, run_demo
    except ModuleNotFoundError as error:
        raise Failure(f"the demo needs {error.name}, which is not installed: pip install 'pysedna[demo]'") from error
    with one_line_errors():
        options = DemoOptions(kubeconfig, context, simulate_nodes, step_timeout)
        code = run_demo(options, Console())
    raise click.exceptions.Exit(code)
