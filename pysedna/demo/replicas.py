"""The manager replicas of the demo: processes of their own that elect one leader, so that one can die without warning.

Which one leads is read from the Lease, as anybody would. Each logs to a file of its own in the folder given.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from informers import Client, NotFoundError, Object, ObjectKey
from pysedna.demo.errors import StepFailed

LEASE = "pysedna-manager"
# Short enough for a takeover within seconds; the ratios are those of the defaults.
LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 3.0, 2.0, 0.4
STOP_SECONDS = 5.0


class Replicas:
    """Two (or more) `pysedna manager` processes on one Lease. Start once; `stop` ends whatever still runs."""

    def __init__(
        self, client: Client, kubeconfig: Path, namespace: str, folder: Path, *, names: Sequence[str] = ("a", "b")
    ) -> None:
        self._leases = client.resource("coordination.k8s.io/v1", "Lease")
        self._kubeconfig = kubeconfig
        self._key = ObjectKey(namespace, LEASE)
        self._folder = folder
        self._names = [f"manager-{name}" for name in names]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Starts every replica; does not wait for any of them."""
        for name in self._names:
            with (self._folder / f"{name}.log").open("wb") as log:
                self._processes[name] = subprocess.Popen(
                    self._command(name), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
                )

    def stop(self) -> None:
        """Asks all to stop, and kills those that have not after a few seconds."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def holder(self) -> str:
        """The identity in the Lease; "" without a Lease or a holder."""
        try:
            return _holder(self._leases.get(self._key))
        except NotFoundError:
            return ""

    def wait_for_other_holder(self, identity: str, timeout: float) -> str:
        """Waits until the Lease names a holder other than `identity`; raises StepFailed after `timeout` seconds."""
        try:
            lease = self._leases.wait_until(self._key, lambda obj: _holder(obj) not in ("", identity), timeout)
        except TimeoutError:
            raise StepFailed(f"no manager but {identity or 'nobody'} held the Lease within {timeout:g} s") from None
        return _holder(lease)

    def kill(self, identity: str) -> None:
        """SIGKILL to the replica of that identity; raises StepFailed if it or all the others are dead already."""
        process = self._processes.get(identity)
        if process is None or process.poll() is not None:
            raise StepFailed(f"the Lease names {identity!r}, which is no running replica of this demo")
        if all(other.poll() is not None for name, other in self._processes.items() if name != identity):
            raise StepFailed(f"no replica but {identity} runs")
        process.kill()
        process.wait()

    @property
    def names(self) -> Sequence[str]:
        """The identities of the replicas."""
        return self._names

    def _command(self, name: str) -> list[str]:
        options = {
            "--kubeconfig": str(self._kubeconfig),
            "--namespace": self._key.namespace,
            "--identity": name,
            "--lease-name": self._key.name,
            "--lease-namespace": self._key.namespace,
            "--lease-duration": str(LEASE_DURATION),
            "--renew-deadline": str(RENEW_DEADLINE),
            "--retry-period": str(RETRY_PERIOD),
            "--http": "127.0.0.1:0",
        }
        return [sys.executable, "-m", "pysedna", "manager", "--leader-elect"] + [
            word for pair in options.items() for word in pair
        ]


def _holder(lease: Object | None) -> str:
    return str((lease.get("spec", {}).get("holderIdentity") if lease else None) or "")
