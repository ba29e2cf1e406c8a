"""The cron line and the systemd units of docs/schedule.md run the command, and the page has every event of its log."""

import ast
import inspect
import re
import shutil
import subprocess

import pytest

from chart_folder import ARTISTS, fill_folder, read_log, write_charts
from discreet.cli import publish
from discreet.publish import run, site_folder
from site_pages import DOCS, blocks, with_programs

PAGE = "schedule.md"
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
    assert [each["event"] for each in log if each["event"] != "price"] == [
        *("total", "released", "noted", "released", "written"),
    ]
    wrong = ARTISTS.replace('"artists"', '"others"').replace('item = "artist"', 'item = "artisd"')
    write_charts(folder, wrong)
    assert '"event": "failed", "chart": "others"' in call().stdout


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


def test_the_page_has_every_event_of_the_log_with_its_keys():
    """All but `declined`, which needs a terminal; the calls that report events are read from the sources."""
    told = {}
    for module in (run, site_folder, publish):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("report", "told", "self")
            if named and node.args and isinstance(node.args[0], ast.Constant):
                told[node.args[0].value] = {each.arg for each in node.keywords if each.arg}
    told["total"] |= {"epsilon", "delta", "left"}
    told["price"] |= {"charged_again", "error", "warning"}
    del told["declined"]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", (DOCS / PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    assert {event: set(re.findall(r"`(\w+)`", keys)) - {"where"} for event, keys in rows} == told
