"""The application as others can run it: by Typer's own runner, in the process of a test."""

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import discreet
from command_line import SELECT
from discreet import cli
from discreet.cli.app import MODULES, app


@pytest.fixture
def invoke(monkeypatch):
    """Runs the application; the arguments of the process are another program's."""
    monkeypatch.setattr("sys.argv", ["pytest", "plan"])
    return lambda *args, **options: CliRunner().invoke(app, list(args), **options)


def test_a_release(invoke):
    found = invoke(*SELECT, "--json")
    assert (found.exit_code, found.stderr) == (0, "")
    assert discreet.Release.from_json(found.stdout).k == 2


def test_standard_input(invoke):
    found = invoke("select", "-", "-k", "1", "--epsilon", "1000", "--format", "items", input="item,score\na,9\nb,1\n")
    assert (found.exit_code, found.output) == (0, "a\n")


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("select",), 2, "FILE is missing; for example: discreet select scores.csv -k 10 --epsilon 1"),
        (("slect",), 2, "no such command 'slect' (did you mean select?); see 'discreet --help'"),
        (("select", "scores.csv", "-k"), 2, "option '-k' requires an argument; see 'discreet select --help'"),
        ((*SELECT, "--epsilon", "0"), 2, "epsilon must be "),
        ((*SELECT, "--ledger", "small.db"), 3, "epsilon 1 does not fit: "),
    ],
)
def test_errors_are_one_line_with_the_exit_codes_of_the_program(invoke, args, code, sentence):
    discreet.Ledger.create("small.db", epsilon="0.5", unit="users")
    found = invoke(*args)
    assert (found.exit_code, found.stdout) == (code, "")
    assert re.fullmatch("discreet: .+\n", found.stderr)
    assert found.stderr.startswith(f"discreet: {sentence}")


@pytest.mark.parametrize(
    ("args", "code", "name"),
    [
        ((*SELECT, "--epsilon", "0"), 2, "wrong-usage"),
        ((*SELECT, "--colour", "red"), 2, "wrong-usage"),
        (("select", "-k"), 2, "wrong-usage"),
        ((*SELECT, "--ledger", "small.db"), 3, "budget-spent"),
        ((*SELECT, "--out", "nowhere/top.json"), 2, "wrong-usage"),
        (("sketch", *SELECT[1:2], "--epsilon", "1", "--ledger", "small.db"), 3, "budget-spent"),
        (("sketch", *SELECT[1:2], "--epsilon", "1", "--ledger", "broken.db"), 1, "ledger"),
    ],
)
def test_the_log_has_every_error_with_a_stable_code(invoke, args, code, name):
    discreet.Ledger.create("small.db", epsilon="0.5", unit="users")
    Path("broken.db").write_text("no ledger")
    for option in (["--log", "json"], ["--log=json"]):
        found = invoke(args[0], *option, *args[1:])
        event = json.loads(found.stderr)
        assert (found.exit_code, found.stdout) == (code, "")
        assert (event["event"], event["code"], event["exit"]) == ("error", name, code)
        assert event["time"].endswith("Z")


def test_the_log_of_a_release_is_beside_it(invoke):
    discreet.Ledger.create("budget.db", epsilon=9, delta="1e-6", unit="users")
    for command in ("select", "sketch"):
        rest = SELECT[2:] if command == "select" else ("--epsilon", "0.5")
        found = invoke(
            command, SELECT[1], *rest, "--json", "--log", "json", "--ledger", "budget.db", "--request-id", command
        )
        event = json.loads(found.stderr)
        assert (event["event"], event["request_id"], found.exit_code) == ("released", command, 0)
        assert json.loads(found.stdout)["guarantee"]["epsilon"]


@pytest.mark.parametrize("name", MODULES)
def test_every_command_can_be_reached(invoke, name):
    found = invoke(name, "--help")
    assert found.exit_code == 0
    assert found.stdout.startswith(f"Usage: discreet {name} ")


def test_it_can_be_called_without_ending_the_process(capsys):
    assert app(["--version"], standalone_mode=False) == 0
    assert app(["nothing"], standalone_mode=False) == 2
    with pytest.raises(SystemExit) as ended:
        app(["nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().out == f"discreet {discreet.__version__}\n"


def test_a_command_is_imported_when_it_is_called():
    group = typer.main.get_command(app)
    assert list(group.commands) == []
    context = group.context_class(group)
    assert group.list_commands(context) == list(MODULES)
    assert group.get_command(context, "select").name == "select"
    assert list(group.commands) == ["select"]
    assert group.get_command(context, "nothing") is None


def test_nothing_private_of_the_framework_is_used():
    files = list(Path(cli.__file__).parent.glob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not re.search(r"typer[.\w]*\._|from typer\S* import _|runtime_param", file.read_text()), file.name
