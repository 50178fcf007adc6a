"""Plays sessions by their seeds: ``python -m informer_sessions 17`` or ``1000-2000``, in the folder tests/kube.

One seed is shown whole: the script, what both sides asked, and what both were shown; of many, those that went wrong.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from informer_sessions.clientgo import ClientGo, build
from informer_sessions.play import play_seeds
from informer_sessions.server import Server

from pysedna.testing.build import find_go


def main(seeds: list[int]) -> int:
    started = time.monotonic()
    failed: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        program = build(find_go(), Path(folder))
        with Server() as server, ClientGo(program) as client_go:
            for seed, outcome in zip(seeds, play_seeds(seeds, server, client_go), strict=True):
                if outcome.wrong:
                    failed.append(seed)
                if outcome.wrong or len(seeds) == 1:
                    print(f"==== seed {seed}\n{outcome}", flush=True)
    print(f"{len(seeds)} sessions in {time.monotonic() - started:.1f} s; wrong: {failed or 'none'}")
    return 1 if failed else 0


def _seeds(arguments: list[str]) -> list[int]:
    found: list[int] = []
    for argument in arguments:
        first, _, last = argument.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(_seeds(sys.argv[1:])))
