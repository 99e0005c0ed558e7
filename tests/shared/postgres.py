"""Runs a command beside a new PostgreSQL: `python3 tests/shared/postgres.py COMMAND…`.

Without a command it only says whether PostgreSQL is installed, by its exit status.
The server is in a temporary folder, and ends with the command. `SLUICEGATE_TEST_POSTGRES` has the address of its socket,
and `SLUICEGATE_TEST_POSTGRES_TLS` one for connections with TLS and a password.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

# The password of the user over TCP: it has every letter that an address has to encode.
PASSWORD = "p@ss:w/rd"
# A connection over TCP without TLS fits no line, and is refused.
ADMITTED = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
TLS = ["ssl=on", "ssl_cert_file=../server.pem", "ssl_key_file=../server.key"]
OTHER_FOLDERS = ["/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"]
SECONDS_TO_START = 60
ROOM = 2 << 30
LINES_SHOWN = 40


def main() -> int:
    programs = installed()
    if programs is None:
        sys.exit("PostgreSQL is not installed (Debian and Ubuntu: `apt-get install postgresql`)")
    if not sys.argv[1:]:
        return 0
    # Not in the target folder: others may not enter root's home, and the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="sluicegate-pg-", dir=memory()) as name:
        folder = Path(name)
        port = free_port()
        create(programs, folder)
        with serving(programs, folder, port):
            status = subprocess.run(sys.argv[1:], env=os.environ | addresses(folder, port), check=False).returncode
        if status:
            lines = (folder / "log").read_text().splitlines()
            print("The end of PostgreSQL's log:", *lines[-LINES_SHOWN:], sep="\n", file=sys.stderr)
        return status


def memory() -> Path | None:
    """A folder in memory, if there is one with enough room: a disk that other work keeps busy makes tests wait."""
    folder = Path("/dev/shm")
    has_room = os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= ROOM
    return folder if has_room else None


def installed() -> Path | None:
    """The folder with the programs: of the newest version where it is as Debian's."""
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    versions.sort(key=lambda path: int(path.parent.name), reverse=True)
    folders = versions + [Path(folder) for folder in OTHER_FOLDERS]
    return next((path for path in folders if (path / "initdb").exists() and (path / "postgres").exists()), None)


def create(programs: Path, folder: Path) -> None:
    """Creates the data, a CA, and a certificate for `localhost`."""
    (folder / "password").write_text(PASSWORD)
    if os.getuid() == 0:
        # PostgreSQL refuses to run as root.
        nobody = pwd.getpwnam("nobody")
        for path in [folder, folder / "password"]:
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    run = partial(subprocess.run, cwd=folder, check=True, stdout=subprocess.DEVNULL, preexec_fn=as_nobody)
    options = "--auth trust --encoding UTF8 --no-locale --pwfile password --no-sync".split()
    run([str(programs / "initdb"), "--pgdata", "data", "--username", "postgres", *options])
    (folder / "data/pg_hba.conf").write_text(ADMITTED)
    request = "openssl req -x509 -days 2 -noenc -newkey ec -pkeyopt ec_paramgen_curve:P-256".split()
    run([*request, "-subj", "/CN=Tests", "-keyout", "ca.key", "-out", "ca.pem"], stderr=subprocess.DEVNULL)
    server = "-subj /CN=localhost -CA ca.pem -CAkey ca.key -keyout server.key -out server.pem".split()
    extensions = ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"]
    run([*request, *server, *extensions], stderr=subprocess.DEVNULL)


@contextmanager
def serving(programs: Path, folder: Path, port: int) -> Iterator[None]:
    """Runs the server, without fsync: the tests do not cut the power."""
    settings = [f"-c{setting}" for setting in ["listen_addresses=127.0.0.1", *TLS]]
    command = [str(programs / "postgres"), "-D", "data", "-F", "-k", str(folder), "-p", str(port), *settings]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, preexec_fn=as_nobody) as server,
    ):
        try:
            wait_until_it_is_ready(server, folder)
            yield
        finally:
            # The immediate shutdown, which releases the shared memory.
            server.send_signal(signal.SIGQUIT)


def wait_until_it_is_ready(server: subprocess.Popen[bytes], folder: Path) -> None:
    """Waits for what `pg_ctl --wait` waits for: a server that listens may still be starting up."""
    deadline = time.monotonic() + SECONDS_TO_START
    status = folder / "data/postmaster.pid"
    while time.monotonic() < deadline and server.poll() is None:
        if status.exists() and status.read_text().rstrip().endswith("\nready"):
            return
        time.sleep(0.05)
    sys.exit(f"PostgreSQL did not start. Its log:\n{(folder / 'log').read_text()}")


def as_nobody() -> None:
    """Leaves root's rights behind; on Linux the process also ends when this one is killed."""
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGQUIT)


def addresses(folder: Path, port: int) -> dict[str, str]:
    tcp = f"postgres:{quote(PASSWORD, safe='')}@localhost:{port}/postgres?sslrootcert={folder / 'ca.pem'}"
    return {
        "SLUICEGATE_TEST_POSTGRES": f"postgres://postgres@{quote(str(folder), safe='')}:{port}/postgres",
        "SLUICEGATE_TEST_POSTGRES_TLS": f"postgres://{tcp}",
    }


def free_port() -> int:
    """A port that was free a moment ago: the server cannot choose one by itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
