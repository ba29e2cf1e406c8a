import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import discreet
from discreet.privacy import fraction_from_json

INIT = ("budget", "init", "budget.db", "--epsilon", "3", "--unit", "users of ratings")
EXAMPLE = 'discreet budget init budget.db --epsilon 3 --unit "users of ratings"'
SELECT = ("select", "scores.csv", "-k", "2", "--epsilon", "1", "--ledger", "budget.db")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    rows = "".join(f"film {i},{10**6 - 1000 * i}\n" for i in range(12))
    Path("scores.csv").write_text("item,score\n" + rows)
    return tmp_path


def test_a_budget_from_the_first_to_the_last(done, refused):
    assert done(*INIT).startswith("budget.db: the privacy of users of ratings, add-remove\n  budget    epsilon 3\n")
    first = done(*SELECT, "--purpose", "monthly chart", "--request-id", "june", "--json")
    assert done(*SELECT, "--request-id", "june", "--json") == first
    done(*SELECT, "--epsilon", "1.5")
    sentence = refused(*SELECT, code=3)
    assert sentence == "epsilon 1 does not fit: 0.5 of 3 is left, and nothing was drawn"
    shown = done("budget", "show", "budget.db")
    for line in ("  spent     2.5", "  left      0.5", "  by sum    2.5", "  releases  2"):
        assert f"{line}\n" in shown
    assert "  by zCDP   rho 0.40625, which needs a delta\n" in shown
    assert f"  head      {discreet.Ledger('budget.db').head}\n" in shown
    lines = done("budget", "history", "budget.db").splitlines()
    assert re.fullmatch(r"    2  \S{20}  epsilon 1  top 2 of 12  canonical  monthly chart  request june", lines[0])
    assert re.fullmatch(r"    4  \S{20}  epsilon 1.5  top 2 of 12  canonical  no purpose given", lines[1])
    assert sorted(os.listdir()) == ["budget.db", "scores.csv"]


def test_a_budget_for_one_dataset(done, refused):
    assert "\n  dataset   ratings\n" in done(*INIT, "--dataset", "ratings")
    done(*SELECT, "--dataset", "ratings")
    # Refused before the scores are read, which cannot be.
    Path("scores.csv").write_text("no table")
    assert refused(*SELECT, "--dataset", "orders") == "dataset must be that of the ledger, 'ratings', not 'orders'"
    assert refused(*SELECT) == "dataset must be given, because the ledger is for one alone, 'ratings'"
    assert "\n  dataset   ratings\n" in done("budget", "show", "budget.db")
    assert json.loads(done("budget", "show", "budget.db", "--json"))["dataset"] == "ratings"


def test_both_ways_of_adding_up_are_shown(done):
    done(*INIT, "--delta", "1e-6", "--adjacency", "swap")
    for _ in range(3):
        done(*SELECT, "--epsilon", "0.1", "--adjacency", "swap")
    shown = done("budget", "show", "budget.db")
    assert "  budget    epsilon 3, delta 1e-06\n" in shown
    assert "  by sum    0.3\n" in shown
    zcdp = discreet.Ledger("budget.db").composition.by_zcdp(discreet.Ledger("budget.db").budget.delta)
    assert f"  by zCDP   rho 0.00375, epsilon {float(zcdp):.12g}\n" in shown


def test_sums_of_more_digits_than_python_spells_are_shown(done):
    """Python makes no text of an int of more than 4300 digits; of fractions without a common divisor a sum has more."""
    done(*INIT)
    for i in range(5):
        done(*SELECT, "--epsilon", f"1/{10**990 + i}")
    assert "  spent     5e-990\n" in done("budget", "show", "budget.db")
    shown, ledger = json.loads(done("budget", "show", "budget.db", "--json")), discreet.Ledger("budget.db")
    assert len(shown["rho"]) > 2 * 4300
    assert fraction_from_json(shown["rho"], "rho") == ledger.composition.rho
    assert fraction_from_json(shown["spent"], "spent") == ledger.composition.epsilon


def test_an_empty_history(done):
    done(*INIT)
    assert done("budget", "history", "budget.db") == "nothing is spent yet\n"


def test_a_charge_without_a_release_is_shown(done, monkeypatch):
    def cut(*_):
        raise KeyboardInterrupt

    done(*INIT)
    monkeypatch.setattr("discreet.exact.entropy.SystemBits.getrandbits", cut)
    with pytest.raises(KeyboardInterrupt):
        discreet.top_k({"a": 1, "b": 2}, 1, 1, ledger="budget.db", purpose="a\nb\x1b")
    assert "  releases  1, 1 of them without a stored release\n" in done("budget", "show", "budget.db")
    assert done("budget", "history", "budget.db").endswith("  a\\nb\\x1b  NO RELEASE STORED, SPENT\n")


def test_check(done, refused):
    done(*INIT)
    first = discreet.Ledger("budget.db").head
    done(*SELECT)
    head = discreet.Ledger("budget.db").head
    assert done("budget", "check", "budget.db").startswith("3 records, none edited")
    assert head in done("budget", "check", "budget.db")
    assert done("budget", "check", "budget.db", "--head", first).endswith("; 2 came after the head given\n")
    assert done("budget", "check", "budget.db", "--head", head).endswith("; 0 came after the head given\n")
    edit("DELETE FROM records WHERE number > 1")
    assert "does not hold the head given" in refused("budget", "check", "budget.db", "--head", head, code=1)
    edit("UPDATE records SET body = replace(body, 'users', 'people')")
    for command in ("check", "show", "history", "export"):
        sentence = refused("budget", command, "budget.db", code=1)
        assert sentence == "the ledger is damaged: record 1 was edited; it must not be used for releases"
    assert "record 1 was edited" in refused(*SELECT, code=1)


def edit(statement):
    with closing(sqlite3.connect("budget.db")) as connection:
        connection.execute(statement)
        connection.commit()


def test_export(done, refused):
    done(*INIT)
    done(*SELECT)
    exported = json.loads(done("budget", "export", "budget.db"))
    assert [record["kind"] for record in exported["records"]] == ["budget", "charge", "store"]
    assert done("budget", "export", "budget.db", "--out", "all.json") == ""
    assert json.loads(Path("all.json").read_text()) == exported == discreet.Ledger("budget.db").export()
    sentence = refused("budget", "export", "budget.db", "--out", "./budget.db")
    assert sentence == "out must be another file than the budget, not 'budget.db'"
    assert discreet.Ledger("budget.db").check() == 3


def test_an_export_that_cannot_be_written_is_a_failure(done, refused, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    done(*INIT)
    monkeypatch.setattr("os.fsync", full)
    sentence = refused("budget", "export", "budget.db", "--out", "all.json", code=1)
    assert sentence == "writing 'all.json' fails: No space left on device"
    assert not Path("all.json").exists()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("budget",), "missing command; see 'discreet budget --help'"),
        (INIT[:2], f"FILE is missing; for example: {EXAMPLE}"),
        (INIT[:3], f"--epsilon is missing; for example: {EXAMPLE}"),
        (INIT[:5], f"--unit is missing; for example: {EXAMPLE}"),
        ((*INIT[:4], "0", *INIT[5:]), "epsilon must be above zero, not '0'"),
        ((*INIT, "--delta", "2"), "delta must be below 1, not '2'"),
        ((*INIT, "--adjacency", "all"), "adjacency must be 'add-remove' or 'swap', not 'all'"),
        (("budget", "show", "no.db"), "ledger must be a file that exists, not '{}/no.db': No such file or directory"),
        (("budget", "check", "old.db", "--head", "x"), "head must be the 64 hexadecimal digits that"),
        (("budget", "init", "old.db", *INIT[3:]), "path must be a file that does not exist yet, not '{}/old.db'"),
        ((*SELECT[:-1], "no.db"), "ledger must be a file that exists, not '{}/no.db': No such file or directory"),
        ((*SELECT[:6], "--purpose", "x"), "purpose must be left out without a ledger, which is where it is written"),
        ((*SELECT[:6], "--request-id", "x"), "request_id must be left out without a ledger"),
        ((*SELECT[:-1], "old.db", "--adjacency", "swap"), "adjacency must be that of the ledger"),
        ((*SELECT[:-1], "old.db", "--out", "old.db"), "out must be another file than the ledger, not 'old.db'"),
        ((*SELECT[:-1], "scores.csv"), "the ledger '{}/scores.csv' is not a ledger, or is damaged: SQLite"),
    ],
)
def test_bad_use_is_refused_in_one_sentence(done, refused, args, sentence):
    done("budget", "init", "old.db", *INIT[3:])
    code = 1 if "SQLite" in sentence else 2
    assert refused(*args, code=code).startswith(sentence.format(os.getcwd()))
    assert discreet.Ledger("old.db").check() == 1


def test_a_bad_ledger_is_refused_before_the_scores_are_read(refused, monkeypatch):
    from discreet.cli import select

    monkeypatch.setattr(select, "file_source", lambda *_: pytest.fail("the file was read"))
    refused(*SELECT)


@pytest.mark.parametrize("command", ["init", "show", "history", "check", "export"])
def test_every_command_has_help(done, command):
    assert "FILE" in done("budget", command, "--help")


def test_the_command_line_is_light_without_a_ledger():
    program = "import sys, discreet.cli; discreet.cli.main(); print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, *SELECT[:6]], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "False"
