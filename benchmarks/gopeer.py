"""The peers that are written in Go: commands of the module in peers/clientgo, built where there is a Go to do it.

What is built stays in build/benchmarks, and Go's own cache makes building it again cheap. Each command says what it
measured as one JSON object on its standard output.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from report import LeftOut

from pysedna.testing.build import GoMissingError, find_go

MODULE = Path(__file__).parent / "peers" / "clientgo"
BUILT = Path(__file__).parent.parent / "build" / "benchmarks" / "bin"


@functools.cache
def build(command: str) -> Path:
    """Build a command of the module and give its path. Blocks; the first time for a minute or two.

    :raises LeftOut: there is no Go here, or what the module needs cannot be fetched
    :raises subprocess.CalledProcessError: it does not compile
    """
    try:
        go = find_go()
    except GoMissingError:
        raise LeftOut("there is no Go on this machine") from None
    # Fetches what is not there yet, so that the two reasons to fail can be told apart.
    fetched = subprocess.run([go, "list", "-deps", f"./{command}"], cwd=MODULE, capture_output=True, text=True)
    if fetched.returncode:
        raise LeftOut(f"Go cannot get what it needs: {fetched.stderr.strip().splitlines()[-1]}")
    BUILT.mkdir(parents=True, exist_ok=True)
    program = BUILT / command
    subprocess.run([go, "build", "-trimpath", "-o", str(program), f"./{command}"], cwd=MODULE, check=True)
    return program


def run(command: str, *arguments: str, timeout: float = 300.0) -> dict[str, Any]:
    """Build a command, run it to its end within `timeout` seconds, and give the JSON object that it printed.

    :raises LeftOut: see `build`
    :raises subprocess.SubprocessError: it failed, or took too long
    """
    ran = subprocess.run([build(command), *arguments], stdout=subprocess.PIPE, text=True, timeout=timeout, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def versions() -> dict[str, str]:
    """The version of client-go that the module asks for; nothing where no Go is there to run it."""
    try:
        find_go()
    except GoMissingError:
        return {}
    wanted = re.search(r"k8s.io/client-go v(\S+)", (MODULE / "go.mod").read_text())
    return {"client-go": wanted[1]} if wanted else {}
