"""The --state file: every write in an SQLite database before it is acknowledged.

The database runs with a write-ahead log; a killed process loses nothing that was acknowledged. The file is looked at
read-only first, so one that is damaged, foreign or of another layout is refused and left exactly as it is.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import orjson

from informers.store import Event, Json
from pysedna.localcluster.errors import StateFileError

_APPLICATION_ID = 0x70736C63
_LAYOUT = 1
_HEADER = b"SQLite format 3\0"


class StateFile:
    """An open state file; used by the server's thread only.

    `first_version` is the version that a new file begins with. Raises `StateFileError` on construction if the file
    cannot be used, and from `append` if a write fails.
    """

    def __init__(self, path: str | Path, *, first_version: int = 1) -> None:
        self._path = Path(path).absolute()
        self.path = str(self._path)
        fresh = not self._path.exists() or self._path.stat().st_size == 0
        if not fresh:
            self._inspect()
        try:
            self._database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=0)
            self._open(first_version if fresh else None)
        except sqlite3.Error as error:
            raise self._refused(error) from error
        self.version = self._database.execute("SELECT version FROM state").fetchone()[0]
        """The newest version that was written."""

    def objects(self) -> Iterator[tuple[str, Json]]:
        """(qualified resource, object) of everything stored."""
        for resource, body in self._database.execute("SELECT resource, body FROM objects ORDER BY resource, path"):
            yield resource, orjson.loads(body)

    def append(self, event: Event) -> None:
        """Makes one write durable; raises `StateFileError` if it could not."""
        identity = (event.resource.qualified, str(event.stored.key))
        try:
            self._database.execute("BEGIN IMMEDIATE")
            if event.type == "DELETED":
                self._database.execute("DELETE FROM objects WHERE resource = ? AND path = ?", identity)
            else:
                row = (*identity, event.stored.raw)
                self._database.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", row)
            self._database.execute("UPDATE state SET version = ?", (event.version,))
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise self._refused(error) from error

    def close(self) -> None:
        self._database.close()

    def _open(self, first_version: int | None) -> None:
        # Exclusive: a second server on the same file is told "database is locked" instead of corrupting versions.
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        self._database.execute("BEGIN EXCLUSIVE")
        if first_version is not None:
            self._database.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            self._database.execute(f"PRAGMA user_version = {_LAYOUT}")
            self._database.execute("CREATE TABLE state (version INTEGER NOT NULL)")
            self._database.execute("INSERT INTO state VALUES (?)", (first_version,))
            self._database.execute(
                "CREATE TABLE objects (resource TEXT, path TEXT, body BLOB NOT NULL, PRIMARY KEY (resource, path)) "
                "WITHOUT ROWID"
            )
        self._database.execute("COMMIT")

    def _inspect(self) -> None:
        """Refuses whatever is not a sound state file, without writing to it."""
        if not self._path.is_file():
            raise StateFileError(str(self._path), "is not a file")
        try:
            with self._path.open("rb") as file:
                header = file.read(len(_HEADER))
        except OSError as error:
            raise StateFileError(str(self._path), f"cannot be read: {error.strerror}") from error
        if header != _HEADER:
            raise StateFileError(str(self._path), "is not an SQLite database (its header is wrong)")
        try:
            with closing(sqlite3.connect(f"{self._path.as_uri()}?mode=ro", uri=True, timeout=0)) as database:
                self._check(database)
        except sqlite3.Error as error:
            raise self._refused(error) from error

    def _check(self, database: sqlite3.Connection) -> None:
        path = str(self._path)
        problems = [row[0] for row in database.execute("PRAGMA integrity_check(3)")]
        if problems != ["ok"]:
            raise StateFileError(path, f"is damaged: {'; '.join(problems)}")
        if database.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise StateFileError(path, "is an SQLite database of another program")
        layout = database.execute("PRAGMA user_version").fetchone()[0]
        if layout != _LAYOUT:
            raise StateFileError(path, f"has layout {layout}, this program reads layout {_LAYOUT}")
        row = database.execute("SELECT version FROM state").fetchone()
        if row is None or not isinstance(row[0], int):
            raise StateFileError(path, "is damaged: it holds no version")
        for resource, name, body in database.execute("SELECT resource, path, body FROM objects"):
            try:
                version = int(orjson.loads(body)["metadata"]["resourceVersion"])
            except (ValueError, KeyError, TypeError) as error:
                raise StateFileError(path, f"is damaged: {resource} {name} is no object ({error})") from error
            if version > row[0]:
                raise StateFileError(path, f"is damaged: {resource} {name} is newer than the newest version {row[0]}")

    def _refused(self, error: sqlite3.Error) -> StateFileError:
        text = str(error)
        if "locked" in text:
            text = "is in use by another process (database is locked)"
        elif "malformed" in text or "not a database" in text:
            text = f"is damaged: {text}"
        return StateFileError(str(self._path), text)
