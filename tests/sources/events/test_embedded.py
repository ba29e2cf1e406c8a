"""Where a DuckDB inside the process spills: in a folder of mode 0700, which goes when the source goes."""

import gc
import os
import signal
import stat
import subprocess
import sys
import time

import duckdb
import pyarrow as pa
import pytest

import discreet

SPILLING = """
import sys, duckdb, ibis
# A machine with little memory, as DuckDB finds it.
connect = duckdb.connect
def small(*args, **options):
    connection = connect(*args, **options)
    connection.execute("SET memory_limit = '48MB'; SET threads = 1")
    return connection
duckdb.connect = small

import discreet
kind, where, then = sys.argv[1:]
if then == "command":
    from discreet import cli
    question = "--user who --item what --domain integers:0:1099511627776 -k 3 --epsilon 1 --quiet"
    sys.argv = ["discreet", "select", f"{where}/events.parquet", *question.split()]
    print("spilled", flush=True)  # or about to
    sys.exit(cli.main())
if kind == "database":
    given = {"table": f"duckdb://{where}/events.ddb", "name": "events"}
else:
    given = {"table": f"{where}/events.parquet"}
source = discreet.events(**given, user="who", item="what", domain=discreet.integers(0, 2**40))
source.tally()
print("spilled", flush=True)
if then == "wait":
    sys.stdin.read()
if then == "close":
    del source
    print("closed", flush=True)
    sys.stdin.read()
"""
"""A snapshot that does not fit: three million items, each with a score of its own."""

ROWS = "SELECT i AS who, (i * 7919) AS what FROM range(3000000) t(i)"


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    with duckdb.connect(str(folder / "events.ddb")) as connection:
        connection.execute(f"CREATE TABLE events AS {ROWS}")
        connection.execute(f"COPY events TO '{folder / 'events.parquet'}'")
    (folder / "spilling.py").write_text(SPILLING, encoding="utf-8")
    return folder


@pytest.fixture
def spill(where, tmp_path):
    """Starts a process that spills, in a working directory and with a folder for temporary files of its own."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    started = []

    def start(kind, then):
        environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        # A file, because DuckDB takes python -c for a terminal and draws its progress.
        command = [sys.executable, "-W", "error", str(where / "spilling.py"), kind, str(where), then]
        process = subprocess.Popen(command, cwd=tmp_path / "work", env=environment, text=True, **pipes)
        started.append(process)
        assert process.stdout.readline() == "spilled\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ends(process):
    """Whether a process ends by itself, without a word of complaint."""
    return (process.communicate()[1], process.returncode) == ("", 0)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.some(1)
@pytest.mark.parametrize("kind", ["file", "database"])
def test_a_kill_leaves_rows_in_a_folder_of_the_user_alone(kind, spill, where, tmp_path):
    beside = files(where)
    process = spill(kind, "wait")
    [folder] = (tmp_path / "temporary").iterdir()
    assert folder.name.startswith("discreet-")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sum(file.stat().st_size for file in files(folder)) > 10**6, "it has truly spilled"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert list((tmp_path / "temporary").iterdir()) == [folder]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert files(tmp_path / "work") == []
    assert [file for file in files(where) if not file.name.endswith(".wal")] == beside


@pytest.mark.long
@pytest.mark.parametrize("kind", ["database", "file"])
def test_nothing_is_left_of_a_process_that_ends(kind, spill, tmp_path):
    assert ends(spill(kind, "end"))
    assert files(tmp_path) == []
    assert list((tmp_path / "temporary").iterdir()) == []


def test_the_folder_goes_with_the_source(spill, tmp_path):
    process = spill("file", "close")
    assert process.stdout.readline() == "closed\n"
    assert list((tmp_path / "temporary").iterdir()) == []
    assert ends(process)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_command_that_is_told_to_end_removes_the_folder(spill, tmp_path):
    process = spill("file", "command")
    # Python tries the folder with a file of its own first.
    while not list((tmp_path / "temporary").glob("discreet-*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() > 0
    assert list((tmp_path / "temporary").iterdir()) == []


FORKED = """
import os, sys, discreet, pyarrow
events = pyarrow.table({"who": [1, 2], "what": ["a", "b"]})
source = discreet.events(events, user="who", item="what", domain=["a", "b", "c"])
if not (child := os.fork()):
    sys.exit(0)
os.waitpid(child, 0)
[folder] = os.listdir(os.environ["TMPDIR"])
"""


@pytest.mark.long
def test_a_forked_process_leaves_the_folder_to_its_parent(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


SETTINGS = "SELECT name, value FROM duckdb_settings() WHERE name IN ('temp_directory', 'autoinstall_known_extensions')"


def settings_of(connection):
    return dict(connection.execute(SETTINGS).fetchall())


def source_of(path):
    return discreet.events(f"duckdb://{path}", name="events", user="who", item="what", domain=[1, 2])


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "events.ddb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE events AS SELECT 1 AS who, 2 AS what")
    return path


def frame_source():
    return discreet.events(pa.table({"who": [1], "what": [1]}), user="who", item="what", domain=[1])


@pytest.mark.parametrize("kind", ["frame", "database"])
def test_no_extension_is_fetched_and_the_folder_is_private(kind, database):
    source = frame_source() if kind == "frame" else source_of(database)
    settings = settings_of(source._opened.table.get_backend().con)
    assert settings["autoinstall_known_extensions"] == "false"
    assert stat.S_IMODE(os.stat(settings["temp_directory"]).st_mode) == 0o700
    del source
    gc.collect()
    assert not os.path.exists(settings["temp_directory"])


def test_a_database_that_the_caller_has_open_keeps_its_settings(database):
    with duckdb.connect(str(database)) as connection:
        own = settings_of(connection)
        source = source_of(database)
        assert discreet.top_k(source, 1, 100).items == [2]
        assert settings_of(connection) == own
        assert own["temp_directory"] == f"{database}.tmp"


def test_a_database_may_be_opened_beside_a_source_and_gets_its_settings_back(database):
    source = source_of(database)
    with duckdb.connect(str(database)) as connection:
        folder = settings_of(connection)["temp_directory"]
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        del source
        gc.collect()
        assert not os.path.exists(folder)
        assert settings_of(connection) == {
            "temp_directory": f"{database}.tmp",
            "autoinstall_known_extensions": "true",
        }


SPILL = "SET memory_limit = '48MB'; SET threads = 1; CREATE TEMP TABLE large AS SELECT i, -i FROM range(5000000) t(i)"


def test_a_database_that_the_caller_still_spills_into_our_folder_keeps_it(database):
    """DuckDB cannot change the folder once it has spilled."""
    source = source_of(database)
    with duckdb.connect(str(database)) as connection:
        connection.execute(SPILL)
        folder = settings_of(connection)["temp_directory"]
        del source
        gc.collect()
        assert os.listdir(folder)
        assert connection.execute("SELECT sum(i) FROM large").fetchone() == (sum(range(5 * 10**6)),)


def test_a_folder_of_the_callers_own_is_taken(database, tmp_path):
    (tmp_path / "mine").mkdir()
    source = source_of(f"{database}?temp_directory={tmp_path / 'mine'}")
    assert settings_of(source._opened.table.get_backend().con)["temp_directory"] == str(tmp_path / "mine")
    del source
    gc.collect()
    assert (tmp_path / "mine").is_dir()
