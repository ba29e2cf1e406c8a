"""The cron line and the systemd units of docs/schedule.md run the command, and the page has every event of its log."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
import types

import pytest

import discreet
from chart_folder import ARTISTS, fill_folder, read_log, write_charts
from discreet.cli import publish
from discreet.cli.app import EXIT_CODES, FAILURE, MIXED
from discreet.cli.output import OutputError
from discreet.ledger import file_store
from discreet.publish import run
from site_pages import DOCS, blocks, with_programs

PAGE = "schedule.md"
GONE = 'connect = "postgres://ada@127.0.0.1:1/db", name = "streams"'
BLOCKS = {title: text for _, title, text in blocks(PAGE)}
SERVICE, TIMER = (BLOCKS[f"/etc/systemd/system/charts.{kind}"] for kind in ("service", "timer"))


@pytest.fixture
def charts(tmp_path):
    """A folder with charts, a budget and a program where the page has them."""
    fill_folder(tmp_path)
    environment = with_programs(tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".programs").rename(tmp_path / ".venv" / "bin")
    return tmp_path, environment


@pytest.mark.long
@pytest.mark.slow
def test_the_cron_line_publishes_and_prints_only_failures(charts):
    folder, environment = charts
    fields, command = re.fullmatch(r"((?:\S+ +){5})(.*)\n", BLOCKS["crontab"]).groups()
    assert fields.split() == ["0", "6", "2", "*", "*"]
    assert "%" not in command, "cron ends a command there"
    command = command.replace("/srv/charts", str(folder))

    def call():
        return subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=300)

    assert call().stdout == ""
    log = read_log((folder / "publish.log").read_text(encoding="utf-8"))
    assert [each["event"] for each in log if each["event"] not in ("price", "noted")] == [
        *("total", "released", "released", "written"),
    ]
    assert "noted" in [each["event"] for each in log]
    wrong = ARTISTS.replace('"artists"', '"others"').replace('item = "artist"', 'item = "artisd"')
    write_charts(folder, wrong)
    assert '"event": "failed", "chart": "others"' in call().stdout


@pytest.mark.long
@pytest.mark.slow
def test_the_script_ends_with_the_code_of_the_command(charts):
    folder, environment = charts
    script = BLOCKS["publish.sh"].replace("/srv/charts", str(folder))

    def call():
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout

    assert call() == (0, "")
    write_charts(folder, ARTISTS.replace('"artists"', '"dear"').replace('epsilon = "0.1"', 'epsilon = "99"'))
    assert call() == (3, "the budget is spent\n")
    write_charts(folder, ARTISTS.replace('"artists"', '"others"').replace('table = "streams/*.parquet"', GONE))
    assert call() == (4, "a database or the network failed: try again\n")
    write_charts(folder, ARTISTS.replace('"artists"', '"others"').replace('item = "artist"', 'item = "artisd"'))
    code, out = call()
    assert (code, '"event": "failed", "chart": "others"' in out) == (2, True)


def test_the_service_calls_the_command_of_cron():
    command = re.search(r"^ExecStart=/srv/charts/(.*)$", SERVICE, re.MULTILINE)[1]
    assert f"&& {command} >>" in BLOCKS["crontab"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_takes_the_units(tmp_path):
    program = shutil.which("true")
    service = re.sub(r"^ExecStart=\S+", f"ExecStart={program}", SERVICE, flags=re.MULTILINE)
    service = service.replace("User=charts", "User=root").replace("/srv/charts", str(tmp_path))
    for kind, text in (("service", service), ("timer", TIMER)):
        (tmp_path / f"charts.{kind}").write_text(text, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "charts.timer")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "charts." in line]) == (0, [])
    moment = re.search(r"^OnCalendar=(.*)$", TIMER, re.MULTILINE)[1]
    assert subprocess.run(["systemd-analyze", "calendar", moment], capture_output=True).returncode == 0


def run_task(text, folder, environment, stand_ins, monkeypatch):
    """Run the code of a page in the folder, with stand-ins for a scheduler that is not installed."""
    for name, module in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    names = {}
    exec(compile(text.replace("/srv/charts", str(folder)), "charts.py", "exec"), names)  # noqa: S102  # our own page
    return names


@pytest.mark.long
@pytest.mark.slow
def test_the_task_of_airflow_retries_only_what_a_retry_can_mend(charts, monkeypatch):
    folder, environment = charts

    class AirflowFailException(Exception):  # noqa: N818  # the name in Airflow
        pass

    ran = []

    def decorate(**options):
        # The decorators of Airflow: a call of a task inside a dag runs it.
        return lambda function: lambda: ran.append(options) or function()

    sdk = types.SimpleNamespace(dag=decorate, task=decorate)
    stand_ins = {
        "airflow": types.SimpleNamespace(),
        "airflow.sdk": sdk,
        "airflow.exceptions": types.SimpleNamespace(AirflowFailException=AirflowFailException),
    }
    run_task(BLOCKS["dags/charts.py"], folder, environment, stand_ins, monkeypatch)
    assert [sorted(each) for each in ran] == [
        ["catchup", "max_active_runs", "schedule", "start_date"], ["retries", "retry_delay"],
    ]  # fmt: skip
    assert (folder / "site" / "index.html").is_file()
    write_charts(folder, ARTISTS.replace('item = "artist"', 'item = "artisd"').replace('"artists"', '"others"'))
    with pytest.raises(AirflowFailException, match="ended with 2"):
        run_task(BLOCKS["dags/charts.py"], folder, environment, stand_ins, monkeypatch)
    is_down = ARTISTS.replace('"artists"', '"others"').replace('table = "streams/*.parquet"', GONE)
    write_charts(folder, is_down)
    with pytest.raises(RuntimeError, match="ended with 4, and is tried again"):
        run_task(BLOCKS["dags/charts.py"], folder, environment, stand_ins, monkeypatch)
    write_charts(folder, is_down + ARTISTS.replace('item = "artist"', 'item = "artisd"').replace('"artists"', '"more"'))
    with pytest.raises(RuntimeError, match="ended with 5, and is tried again"):
        run_task(BLOCKS["dags/charts.py"], folder, environment, stand_ins, monkeypatch)


@pytest.mark.long
@pytest.mark.slow
def test_the_op_of_dagster_retries_only_what_a_retry_can_mend(charts, monkeypatch):
    folder, environment = charts

    class Failure(Exception):  # noqa: N818  # the name in Dagster
        def __init__(self, description, allow_retries):
            super().__init__(description, allow_retries)

    class RetryRequested(Exception):  # noqa: N818  # the name in Dagster
        def __init__(self, max_retries, seconds_to_wait):
            super().__init__(max_retries, seconds_to_wait)

    stand_in = types.SimpleNamespace(
        op=lambda function: function, job=lambda function: function, Failure=Failure, RetryRequested=RetryRequested,
        ScheduleDefinition=lambda **options: options, Definitions=lambda **options: options,
    )  # fmt: skip
    names = run_task(BLOCKS["charts.py"], folder, environment, {"dagster": stand_in}, monkeypatch)
    names["charts"]()
    assert (folder / "site" / "index.html").is_file()
    assert names["definitions"]["schedules"][0]["cron_schedule"] == "0 6 2 * *"
    write_charts(folder, ARTISTS.replace('item = "artist"', 'item = "artisd"').replace('"artists"', '"others"'))
    with pytest.raises(Failure) as failed:
        names["charts"]()
    assert failed.value.args == ("discreet publish ended with 2", False)
    write_charts(folder, ARTISTS.replace('"artists"', '"others"').replace('table = "streams/*.parquet"', GONE))
    with pytest.raises(RetryRequested):
        names["charts"]()


def test_the_page_has_every_exit_code_and_every_code_of_an_error():
    rows = re.findall(r"^\| (\d+) \| .* \| (.*?) ?\|$", (DOCS / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    listed = {name: int(code) for code, names in rows for name in re.findall(r"`([\w-]+)`", names)}
    kinds, found = [discreet.Error], {"unexpected"}
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        found.add(kind.code)
    found = (found | {OutputError.code, "interrupted"}) - {discreet.Error.code}
    assert listed == {name: EXIT_CODES.get(name, FAILURE) for name in found}
    assert {int(code) for code, _ in rows} == {0, *listed.values(), MIXED}


def test_the_page_has_every_event_of_the_log_with_its_keys():
    """All but `declined`, which needs a terminal; the calls that report events are read from the sources."""
    told = {}
    for module in (run, file_store, publish):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("report", "told", "self")
            if named and node.args and isinstance(node.args[0], ast.Constant):
                told[node.args[0].value] = {each.arg for each in node.keywords if each.arg}
    told["total"] |= {"epsilon", "delta", "left", "period"}
    told["price"] |= {"charged_again", "coming", "error", "code", "warning"}
    told["failed"] |= {"code"}
    told["error"] = {"error", "code", "exit"}
    del told["declined"]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (DOCS / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    assert {event: set(re.findall(r"`(\w+)`", keys)) - {"where"} for event, keys in rows} == told
