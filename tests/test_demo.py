"""The whole story, played by the command as a user starts it, on the embedded cluster."""

import re
import subprocess
import sys

import pytest

STEPS = (
    "Apply a job and a service",
    "Delete a trainer, then twice more at once",
    "Delete a service pod, then a deployment",
    "Edit the job and the service",
    "Kill the active manager",
    "Delete the job and the service",
)


def demo(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pysedna", "demo", *words], capture_output=True, text=True, timeout=110, check=False
    )


@pytest.mark.slow
def test_every_step_of_the_story_holds() -> None:
    result = demo()
    assert result.returncode == 0, result.stdout + result.stderr
    table = result.stdout[result.stdout.index("what was checked") :]
    for number, title in enumerate(STEPS, start=1):
        assert f"{number}. {title}" in table
    seconds = re.search(r"All 6 steps passed in (\d+\.\d) s", result.stdout)
    assert seconds, result.stdout
    assert float(seconds[1]) < 60, "it takes less than 30 s on a machine of its own"
    assert "\x1b" not in result.stdout, "plain lines without a terminal"


def test_a_step_that_fails_is_named_and_the_exit_code_says_so() -> None:
    result = demo("--step-timeout", "0")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Step 1 failed: waited 0 s for pod surface-defects-aggregation-0 to run" in result.stdout
    assert "FAILED" in result.stdout[result.stdout.index("what was checked") :]
    assert "Last lines of manager-a" in result.stdout
    assert "Traceback" not in result.stdout + result.stderr
