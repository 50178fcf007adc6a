"""Prepares what the story needs, plays it step by step, and clears up: the demo's main function.

By default everything happens on an embedded cluster that lives as long as the run. With a kubeconfig the story is
played on that cluster instead, in a namespace of its own; that, and the custom resource definitions that were not there
before, is removed at the end, also after a failure or Ctrl-C.
"""

import contextlib
import logging
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TypeVar, cast

from rich.console import Console

from informers import Client, InformersError, NotFoundError, Object, ObjectKey, Resource
from informers.errors import AlreadyExistsError
from pysedna.api.crds import crds
from pysedna.demo.errors import SetUpFailed, StepFailed
from pysedna.demo.objects import API_VERSION
from pysedna.demo.recorder import Recorder
from pysedna.demo.replicas import Replicas
from pysedna.demo.story import STEPS, Step, Story
from pysedna.demo.view import Outcome, View, make_view, print_table
from workqueue.clock import MonotonicClock

T = TypeVar("T")

WATCHED = (
    ("v1", "Pod"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    (API_VERSION, "FederatedLearningJob"),
    (API_VERSION, "JointInferenceService"),
)
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SIMULATED_NODES = ("cloud-1", "edge-1", "edge-2")
SET_UP_SECONDS = 20.0
CLEAN_UP_SECONDS = 60.0
LOG_LINES = 15


@dataclass(frozen=True)
class DemoOptions:
    """What the command line says. `kubeconfig` None: the embedded cluster. `step_timeout`: seconds a wait may take."""

    kubeconfig: str | None = None
    context: str | None = None
    simulate_nodes: bool = False
    step_timeout: float = 20.0


def run_demo(options: DemoOptions, console: Console, *, steps: Sequence[Step] = STEPS) -> int:
    """Plays `steps` and prints the table; returns the exit code: 0 when all passed, 1 when something failed.

    Call it in the main thread: SIGTERM ends it as Ctrl-C does, by KeyboardInterrupt, after clearing up.
    """
    clock = MonotonicClock()
    began = clock.now()
    outcomes: list[Outcome] = []
    view = make_view(console, lambda: clock.now() - began, [step.title for step in steps])
    with (
        _sigterm_as_interrupt(),
        tempfile.TemporaryDirectory(prefix="pysedna-demo-") as folder,
        _logs_to(Path(folder) / "cluster.log"),
    ):
        try:
            with view, contextlib.ExitStack() as stack:
                story, replicas = _set_up(options, stack, view, Path(folder))
                outcomes = _interruptibly(lambda: _play(story, replicas, steps, view), story.recorder.give_up)
        except (SetUpFailed, InformersError) as error:
            failed = f"The demo could not be set up or cleared up: {error}"
            console.print(failed, style="red", markup=False, highlight=False, soft_wrap=True)
            return 1
        finally:
            if outcomes:
                print_table(console, outcomes)
        if len(outcomes) == len(steps) and all(one.passed for one in outcomes):
            console.print(f"All {len(steps)} steps passed in {clock.now() - began:.1f} s.", highlight=False)
            return 0
        failed = f"Step {outcomes[-1].number} failed: {outcomes[-1].text}"
        console.print(failed, style="red", markup=False, highlight=False, soft_wrap=True)
        for log in sorted(Path(folder).glob("*.log")):
            console.print(f"Last lines of {log.stem}:", style="bold")
            lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
            console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
        return 1


def _interruptibly(play: Callable[[], T], give_up: Callable[[], None]) -> T:
    """Run `play` on a thread of its own; an interrupt ends it by way of `give_up`, and is raised once it has ended.

    An interrupt may strike anywhere, also between taking a lock and the block that gives it back: the client's would
    stay locked for all threads. Here the main thread only waits, in one call that has nothing to leave behind.
    """
    ends: SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = SimpleQueue()

    def run() -> None:
        try:
            ends.put((play(), None))
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            ends.put((None, error))

    thread = threading.Thread(target=run, name="demo-story")
    thread.start()
    try:
        result, error = ends.get()
    except KeyboardInterrupt:
        give_up()
        ends.get()
        raise
    thread.join()
    if error is not None:
        raise error
    return cast(T, result)


def _play(story: Story, replicas: Replicas, steps: Sequence[Step], view: View) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for number, step in enumerate(steps, start=1):
        view.began(number, step.title)
        began = story.recorder.seconds()
        try:
            text, passed = step.play(story), True
        except (StepFailed, InformersError) as error:
            text, passed = str(error), False
        outcome = Outcome(number, step.title, text, story.recorder.seconds() - began, passed)
        outcomes.append(outcome)
        view.ended(outcome)
        if not passed:
            break
    return outcomes


def _set_up(options: DemoOptions, stack: contextlib.ExitStack, view: View, folder: Path) -> tuple[Story, Replicas]:
    if options.kubeconfig is None:
        client, kubeconfig = _embedded_cluster(stack)
    else:
        kubeconfig = Path(options.kubeconfig)
        client = stack.enter_context(Client.from_kubeconfig(options.kubeconfig, options.context))
    view.note(f"cluster: {client.server}")
    _install_crds(client, stack, keep=options.kubeconfig is None)
    namespace = _make_namespace(client, stack, view, keep=options.kubeconfig is None)
    nodes: Sequence[str] = SIMULATED_NODES
    pin = options.kubeconfig is None or options.simulate_nodes
    if options.simulate_nodes and options.kubeconfig is not None:
        nodes = [f"{namespace}-{name}" for name in SIMULATED_NODES]
        _simulate_nodes(client, namespace, nodes, stack)
    elif options.kubeconfig is not None:
        nodes = _real_nodes(client)

    recorder = Recorder(client, WATCHED, namespace)
    stack.callback(recorder.stop)
    recorder.start()
    view.show_pods(lambda: recorder.ask(lambda seen: seen.live("Pod")))
    replicas = Replicas(client, kubeconfig, namespace, folder)
    stack.callback(replicas.stop)
    replicas.start()
    view.note(f"managers: {', '.join(replicas.names)}; namespace: {namespace}")
    story = Story(client, namespace, nodes, recorder, replicas, options.step_timeout, pin, view.note)
    return story, replicas


def _embedded_cluster(stack: contextlib.ExitStack) -> tuple[Client, Path]:
    from pysedna.localcluster import LocalCluster

    cluster = stack.enter_context(LocalCluster(nodes=SIMULATED_NODES))
    return cluster.client, Path(cluster.kubeconfig)


def _install_crds(client: Client, stack: contextlib.ExitStack, *, keep: bool) -> None:
    # Definitions that are there already stay as they are: they may be Sedna's own, with objects of somebody.
    resource = client.resource(*CRD)
    for definition in crds():
        name = definition["metadata"]["name"]
        try:
            made = resource.create(definition)
        except AlreadyExistsError:
            continue
        except InformersError as error:
            raise SetUpFailed(f"{client.server}: cannot create the definition {name}: {error}") from error
        if not keep:
            stack.callback(_remove, resource, made.key, made.uid)
    for definition in crds():
        _wait_until_served(client, resource, definition["metadata"]["name"], definition["spec"]["names"]["kind"])


def _wait_until_served(client: Client, resource: Resource, name: str, kind: str) -> None:
    def established(obj: Object | None) -> bool:
        conditions = obj.get("status", {}).get("conditions", ()) if obj else ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    try:
        resource.wait_until(ObjectKey("", name), established, SET_UP_SECONDS)
        client.resource(API_VERSION, kind).list(limit=1)
    except (TimeoutError, NotFoundError) as error:
        raise SetUpFailed(f"{client.server}: the definition {name} is not served: {error}") from error


def _make_namespace(client: Client, stack: contextlib.ExitStack, view: View, *, keep: bool) -> str:
    name = f"pysedna-demo-{secrets.token_hex(3)}"
    resource = client.resource("v1", "Namespace")
    made = resource.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def remove() -> None:
        view.note(f"removing namespace {name}")
        _remove(resource, made.key, made.uid)
        resource.wait_until(made.key, lambda obj: obj is None, CLEAN_UP_SECONDS)

    if not keep:
        stack.callback(remove)
    return name


def _remove(resource: Resource, key: ObjectKey, uid: str) -> None:
    with contextlib.suppress(NotFoundError):
        resource.delete(key, uid=uid)


def _simulate_nodes(client: Client, namespace: str, nodes: Sequence[str], stack: contextlib.ExitStack) -> None:
    from pysedna.controller import Manager
    from pysedna.localcluster.controllers import setup_nodes

    manager = Manager(client, name="simulated-nodes", namespaces=[namespace], http=None)
    setup_nodes(manager, nodes=nodes)
    stop = threading.Event()
    thread = threading.Thread(target=manager.run, args=(stop,), name="demo-nodes")
    thread.start()
    stack.callback(thread.join)
    stack.callback(stop.set)


def _real_nodes(client: Client) -> list[str]:
    names = [node.name for node in client.resource("v1", "Node").list().items]
    if not names:
        raise SetUpFailed(f"{client.server} has no nodes: pods would never run there (see --simulate-nodes)")
    return names


@contextlib.contextmanager
def _logs_to(path: Path) -> Iterator[None]:
    # What this process logs (the embedded cluster, the simulated nodes) must not break into the live view.
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
