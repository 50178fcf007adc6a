"""How fast does an informer fill its cache and follow a watch, beside client-go's and other clients, at what cost?

    python benchmarks/bench_informers.py                            # everything: about a quarter of an hour
    python benchmarks/bench_informers.py --json FILE                # the figures for machines too
    python benchmarks/bench_informers.py --part throughput --only ours --only go-protobuf --pods 5000 --events 5000
    python benchmarks/bench_informers.py --only ours --profile      # one run, and where its processor time goes
    python benchmarks/bench_informers.py --python .venv-3.13/bin/python      # Python peers on another interpreter

Server and peers are processes of their own; informer_runs.py says how they work together. client-go takes part where
there is Go to build it with, other Python clients where they are installed. Compare the rows of one run only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
import gopeer
import informer_runs as runs
import report
from informer_runs import FLOOR, GO_DYNAMIC, GO_JSON, GO_PROTOBUF, OTHERS, OURS, PARSED, Peer, Server
from report import Figures, Group, Report, Run, Spread

ABOUT = (
    "Pods of 6.5 KB as JSON, a third of it managedFields (4.3 KB as protobuf), come over loopback from a server of "
    "prebuilt bytes: listed in pages of 500, then changed one by one as fast as they are read. Every peer keeps them "
    "in a cache with an index by `spec.nodeName` and adds each key to a work queue; what is measured ends with the "
    "last handler's call. `CPU us` is processor time for each object, of all threads; `MB` the largest resident set, "
    "imports included; `start` what was spent before the first request. client-go may use every core; the server "
    "needs `server CPU` of one. Nothing is compressed or encrypted."
)
UNEQUAL = (
    "client-go decodes whole objects on arrival, pysedna what identifies an object and what an index names; what a "
    "handler or reconciler reads is decoded then. The row with handlers that read shows some of that.",
    "pysedna drops managedFields unless told otherwise, client-go keeps them unless a transform drops them.",
    "This server pages whatever version is asked for, which spares client-go memory: a real one answers its list at "
    "version 0 in one piece.",
    "client-go runs on every core by default. Where other work competes for them it can be quicker on one: see that "
    "row before trusting a ratio.",
    "client-go's own limit of 5 requests a second is off, pysedna has none.",
    "The official client, lightkube and kubernetes_asyncio have no index and no queue of their own: their handlers "
    "fill a dict of sets and pysedna's queue. The latter two have no informer: they list once and watch once.",
)
PARTS = ("throughput", "others", "variants", "scale", "handlers", "collector", "latency", "idle")
PACKAGES = ("pysedna", "kubernetes", "kopf", "lightkube", "kubernetes-asyncio", "msgspec", "orjson")


def of(group_peers: Iterable[Peer], server: Server, *options: str) -> dict[str, Run]:
    """A throughput run for each peer."""
    return {peer.name: partial(peer.throughput, server, *options) for peer in group_peers}


def throughput(result: Report, known: Mapping[str, Peer], only: tuple[str, ...], pods: int, events: int) -> None:
    """The main table: ours beside client-go and beside what Python can do at all."""
    chosen = [known[key] for key in only or (OURS, GO_JSON, GO_PROTOBUF, FLOOR, PARSED)]
    with Server(pods, events) as server:
        group = result.measure(f"{pods:,} pods, {events:,} events", of(chosen, server))
    ours, json, protobuf = (known[key].name for key in (OURS, GO_JSON, GO_PROTOBUF))
    for column, theirs, limit in (
        (runs.LIST, json, 8.0),
        (runs.LIST, protobuf, 1.5),
        (runs.WATCH, json, 14.0),
        (runs.WATCH, protobuf, 1.0),
    ):
        what = column.partition(" ")[0]
        result.goal(f"{what}: speed by that of {theirs}", group.ratio(ours, theirs, column), at_least=limit)
    result.goal("peak memory in MB", _larger(group, ours), at_most=150.0)


def _larger(group: Group, name: str) -> Spread | None:
    peaks = [group.spread(name, column) for column in (runs.LIST_PEAK, runs.WATCH_PEAK)]
    return max((peak for peak in peaks if peak is not None), key=lambda peak: peak.median, default=None)


def others(result: Report, known: Mapping[str, Peer], pods: int, events: int) -> None:
    """Other Python clients, which would take minutes for the whole."""
    with Server(pods, events) as server:
        title = f"Python clients, {pods:,} pods, {events:,} events"
        result.measure(title, of([known[key] for key in (OURS, *OTHERS)], server), rounds=min(result.rounds, 3))


def variants(result: Report, known: Mapping[str, Peer], pods: int, events: int) -> None:
    """The list streamed by a watch, as newer servers offer it; and both sides in other settings."""
    ours, json, protobuf = (known[key] for key in (OURS, GO_JSON, GO_PROTOBUF))
    rounds = min(result.rounds, 3)
    with Server(pods, events, watch_list=True) as server:
        streamed = f"list streamed by a watch, {pods:,} pods, {events:,} events"
        result.measure(streamed, of((ours, json, protobuf), server), rounds=rounds)
    with Server(pods, events) as server:
        contenders: dict[str, Run] = {
            ours.name: partial(ours.throughput, server),
            "the same, index by a Python function": partial(ours.throughput, server, "--index=function"),
            "the same, handlers read labels and status": partial(ours.throughput, server, "--read=1"),
            protobuf.name: partial(protobuf.throughput, server),
            "client-go, protobuf, on one core": partial(protobuf.throughput, server, "--cores=1"),
            "client-go, protobuf, managedFields dropped": partial(protobuf.throughput, server, "--strip"),
            known[GO_DYNAMIC].name: partial(known[GO_DYNAMIC].throughput, server),
        }
        result.measure(f"in other settings, {pods:,} pods, {events:,} events", contenders, rounds=rounds)


def scale(result: Report, known: Mapping[str, Peer], sizes: tuple[int, ...], events: int) -> None:
    """Does an object cost more where there are many?"""
    with ExitStack() as stack:
        servers = [stack.enter_context(Server(size, events)) for size in sizes]
        contenders: dict[str, Run] = {}
        for peer in (known[OURS], known[GO_PROTOBUF]):
            for server in servers:
                contenders[f"{peer.name}, {server.pods:,} pods"] = partial(peer.throughput, server)
        group = result.measure(f"size of the cache, {events:,} events", contenders, rounds=min(result.rounds, 3))
    least, most = (f"{known[OURS].name}, {size:,} pods" for size in (sizes[0], sizes[-1]))
    for column in (runs.LIST_CPU, runs.WATCH_CPU):
        what = f"{column} with {sizes[-1]:,} pods by that with {sizes[0]:,}"
        result.goal(what, group.ratio(most, least, column), at_most=1.25)


def handlers(result: Report, known: Mapping[str, Peer], pods: int, events: int) -> None:
    """One handler, and ten of them on one informer, each with a queue of its own."""
    ours = known[OURS]
    with Server(pods, events) as server:
        contenders: dict[str, Run] = {
            f"{peer.name}, {count} handlers": partial(peer.throughput, server, f"--handlers={count}")
            for peer in (ours, known[GO_PROTOBUF])
            for count in (1, 10)
        }
        group = result.measure("handlers of one informer", contenders, rounds=min(result.rounds, 3))
    one, ten = (f"{ours.name}, {count} handlers" for count in (1, 10))
    for column in (runs.LIST_CPU, runs.WATCH_CPU):
        result.goal(f"{column} with 10 handlers by that with one", group.ratio(ten, one, column), at_most=2.0)


def collector(result: Report, known: Mapping[str, Peer], pods: int, events: int) -> None:
    """Python's garbage collector: as it is, frozen after the list, off."""
    ours = known[OURS]
    modes = {"as it is": "default", "gc.freeze() after the list": "freeze", "gc.disable()": "off"}
    with Server(pods, events) as server:
        contenders: dict[str, Run] = {
            text: partial(ours.throughput, server, f"--gc={mode}") for text, mode in modes.items()
        }
        result.measure("garbage collector", contenders, rounds=min(result.rounds, 3))


def latency(result: Report, known: Mapping[str, Peer], pods: int, count: int) -> None:
    """From the wire to the reconcile."""
    with Server(pods, 0) as server:
        contenders: dict[str, Run] = {
            peer.name: partial(peer.latency, server, count)
            for peer in (known[OURS], known[GO_JSON], known[GO_PROTOBUF])
        }
        group = result.measure(f"event to reconcile, {count:,} events, one at a time", contenders)
    for column, limit in (("median ms", 1.0), ("p99 ms", 5.0)):
        result.goal(f"event to reconcile, {column}", group.spread(known[OURS].name, column), at_most=limit)


def idle(result: Report, known: Mapping[str, Peer], informers: int, seconds: float) -> None:
    """Nothing to do but a bookmark now and then."""
    with Server(100, 0, bookmark=seconds / 2) as server:

        def run(peer: Peer, *options: str) -> Figures:
            found = peer.run(server, f"--informers={informers}", *options)
            return {"CPU % of a core": 100 * found["cpu"] / found["wall"], "MB": found["peak"] / 2**20}

        contenders: dict[str, Run] = {
            known[OURS].name: partial(run, known[OURS], f"--idle={seconds:g}"),
            known[GO_PROTOBUF].name: partial(run, known[GO_PROTOBUF], f"--idle={seconds:g}s"),
        }
        title = f"{informers} idle informers, {seconds:g} s"
        group = result.measure(title, contenders, rounds=min(result.rounds, 2))
    share = group.spread(known[OURS].name, "CPU % of a core")
    result.goal(f"{informers} idle informers, % of a core", share, at_most=1.0)


def profile(known: Mapping[str, Peer], pods: int, events: int) -> None:
    """One run of ours under a profiler, which prints by itself; the figures are several times too large."""
    with Server(pods, events) as server:
        known[OURS].run(server, f"--events={events}", "--profile=1", visible=True)


@click.command()
@click.option("--pods", default=20_000, show_default=True, type=click.IntRange(1), help="How many are listed.")
@click.option("--events", default=20_000, show_default=True, type=click.IntRange(1), help="How many follow.")
@click.option("--part", "parts", multiple=True, type=click.Choice(PARTS), help="Measure this only; may be repeated.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(list(runs.peers(""))),
    help="Of the first part, this peer only; likewise.",
)
@click.option("--python", default=sys.executable, help="The interpreter of the Python peers.")
@click.option("--profile", "profiling", is_flag=True, help="One run of ours with a profile, and nothing else.")
@report.options(rounds=5)
def main(
    pods: int,
    events: int,
    parts: tuple[str, ...],
    only: tuple[str, ...],
    python: str,
    profiling: bool,
    quick: bool,
    rounds: int,
    json_file: Path | None,
) -> None:
    """Measure informers beside others, and print tables."""
    known = runs.peers(python)
    if quick:
        pods, events = 200, 200
    if profiling:
        profile(known, pods, events)
        return
    result = Report(
        "informers", "Informers", script=__file__, rounds=rounds, quick=quick, about=ABOUT, peers=gopeer.versions()
    )
    result.facts["python"], versions = runs.facts(python, PACKAGES)
    result.facts["versions"] |= versions
    for note in UNEQUAL:
        result.note(note)
    wanted = parts or (("throughput",) if only else PARTS)
    fewer = min(pods, 1_000)
    if "throughput" in wanted:
        throughput(result, known, only, pods, events)
    if "others" in wanted:
        others(result, known, fewer, min(events, 1_000))
    if "variants" in wanted:
        variants(result, known, pods, events)
    if "scale" in wanted:
        scale(result, known, (pods // 4, pods, 5 * pods), events)
    if "handlers" in wanted:
        handlers(result, known, pods, events)
    if "collector" in wanted:
        collector(result, known, pods, events)
    if "latency" in wanted:
        latency(result, known, fewer, 20 if quick else 500)
    if "idle" in wanted:
        idle(result, known, 50, 0.5 if quick else 15.0)
    result.finish(json_file)


if __name__ == "__main__":
    main()
