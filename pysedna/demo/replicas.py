"""The manager replicas of the demo: processes of their own that elect one leader, so that one can die without warning.

Which one leads is read from the Lease, as anybody would. Each logs to a file of its own in the folder given, and none
outlives the demo, however that ends.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from informers import Client, NotFoundError, Object, ObjectKey
from pysedna.demo.errors import StepFailed
from pysedna.testing.server import Server

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
        self._servers = {f"manager-{name}": Server(f"manager-{name}", folder=folder, temporary=False) for name in names}

    def start(self) -> None:
        """Starts every replica; does not wait for any of them to be ready."""
        for name, server in self._servers.items():
            server.start(self._command(name))

    def stop(self) -> None:
        """Asks one after the other to stop, and kills what has not after a few seconds."""
        for server in self._servers.values():
            server.stop(STOP_SECONDS)

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
        server = self._servers.get(identity)
        if server is None or not server.running:
            raise StepFailed(f"the Lease names {identity!r}, which is no running replica of this demo")
        if not any(other.running for name, other in self._servers.items() if name != identity):
            raise StepFailed(f"no replica but {identity} runs")
        server.kill()

    @property
    def names(self) -> Sequence[str]:
        """The identities of the replicas."""
        return list(self._servers)

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
