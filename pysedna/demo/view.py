"""What the reader sees: a live picture in a terminal, plain lines elsewhere, and the same table at the end of both.

A view is told what happens and draws it; it decides nothing. The live one asks the recorder for the pods that exist.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from informers import Object
from pysedna.demo.history import phase
from pysedna.demo.objects import environment

PLAIN_WIDTH = 130
NOTES_SHOWN = 6


@dataclass(frozen=True)
class Outcome:
    """How one step ended: `text` says what was checked, or what was wrong."""

    number: int
    title: str
    text: str
    seconds: float
    passed: bool


class View(Protocol):
    """Told of everything, in order, on the thread that plays the story. A context manager around the run."""

    def __enter__(self) -> Self:
        """Begins to draw."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops drawing."""

    def note(self, text: str) -> None:
        """Something happened that is worth a line."""

    def began(self, number: int, title: str) -> None:
        """A step begins."""

    def ended(self, outcome: Outcome) -> None:
        """A step ended."""

    def show_pods(self, pods: Callable[[], Sequence[Object]]) -> None:
        """From now on the pods that exist may be asked for, from any thread."""


class PlainView:
    """A line for each thing that happens, with the seconds since the start: for logs and pipes."""

    def __init__(self, console: Console, seconds: Callable[[], float]) -> None:
        self._console = console
        self._seconds = seconds

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def note(self, text: str) -> None:
        """A line below the step."""
        self._line(f"    {text}")

    def began(self, number: int, title: str) -> None:
        """A line with the step's number and title."""
        self._line(f"{number}. {title}")

    def ended(self, outcome: Outcome) -> None:
        """A line that says ok or FAILED."""
        self._line(f"   {'ok' if outcome.passed else 'FAILED'}: {outcome.text}")

    def show_pods(self, pods: Callable[[], Sequence[Object]]) -> None:
        """Plain lines do not show pods."""

    def _line(self, text: str) -> None:
        self._console.print(f"{self._seconds():5.1f} s  {text}", markup=False, highlight=False, soft_wrap=True)


class LiveView:
    """The steps, the pods as they are and the latest notes, redrawn several times a second on a thread of rich's."""

    def __init__(self, console: Console, seconds: Callable[[], float], titles: Sequence[str]) -> None:
        self._seconds = seconds
        self._titles = titles
        self._lock = threading.Lock()
        self._outcomes: list[Outcome] = []
        self._running: tuple[int, float] | None = None
        self._notes: list[str] = []
        self._pods: Callable[[], Sequence[Object]] = list
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def note(self, text: str) -> None:
        """Shown in the list of the latest notes."""
        with self._lock:
            self._notes = [*self._notes, f"{self._seconds():5.1f} s  {text}"][-NOTES_SHOWN:]

    def began(self, number: int, title: str) -> None:
        """Marks the step as running."""
        with self._lock:
            self._running = (number, self._seconds())

    def ended(self, outcome: Outcome) -> None:
        """Marks the step as passed or failed."""
        with self._lock:
            self._running = None
            self._outcomes.append(outcome)

    def show_pods(self, pods: Callable[[], Sequence[Object]]) -> None:
        """Draws them from now on."""
        with self._lock:
            self._pods = pods

    def _draw(self) -> RenderableType:
        with self._lock:
            outcomes, running, notes, pods = list(self._outcomes), self._running, list(self._notes), self._pods
        steps = Table.grid(padding=(0, 1))
        for number, title in enumerate(self._titles, start=1):
            outcome = next((one for one in outcomes if one.number == number), None)
            if outcome:
                mark = Text("ok", style="green") if outcome.passed else Text("failed", style="red")
                steps.add_row(mark, f"{number}. {title}", f"{outcome.seconds:.1f} s")
            elif running and running[0] == number:
                taken = self._seconds() - running[1]
                steps.add_row(Text("...", style="yellow"), f"{number}. {title}", f"{taken:.1f} s")
            else:
                steps.add_row("", Text(f"{number}. {title}", style="dim"), "")
        return Group(steps, "", pod_table(pods()), "", Text("\n".join(notes), style="dim"))


def pod_table(pods: Sequence[Object]) -> Table:
    """The pods as rows: name, node, phase, and what tells the old spec from the new."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("pod", "node", "phase", "spec"):
        table.add_column(column, min_width=10)
    for pod in pods:
        env = environment(pod)
        spec = f"batch_size={env['batch_size']}" if "batch_size" in env else env.get("HEM_PARAMETERS", "")
        state = Text("leaving", style="red") if pod.deletion_timestamp else _phase_text(phase(pod))
        table.add_row(pod.name, str(pod["spec"].get("nodeName", "")), state, Text(spec))
    return table


def print_table(console: Console, outcomes: Sequence[Outcome]) -> None:
    """The table at the end: step, what was checked, seconds."""
    table = Table(title="pysedna demo", title_justify="left")
    table.add_column("step")
    table.add_column("what was checked")
    table.add_column("seconds", justify="right")
    for outcome in outcomes:
        text = Text(outcome.text) if outcome.passed else Text(f"FAILED: {outcome.text}", style="red")
        table.add_row(Text(f"{outcome.number}. {outcome.title}"), text, f"{outcome.seconds:.1f}")
    console.print(table)


def make_view(console: Console, seconds: Callable[[], float], titles: Sequence[str]) -> View:
    """The live view for a terminal, else plain lines (which are then not folded at 80 columns)."""
    if console.is_terminal:
        return LiveView(console, seconds, titles)
    console.width = max(console.width, PLAIN_WIDTH)
    return PlainView(console, seconds)


def _phase_text(name: str) -> Text:
    return Text(name, style={"Running": "green", "Failed": "red"}.get(name, "yellow"))
