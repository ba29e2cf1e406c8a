"""A file as people have them: what `check` says of it leads to a release that is right."""

import random
import re

import pytest

DISHES = ["Currywurst", "寿司", "Köfte", "Käsespätzle", "Phở", "Smørrebrød", "Żurek", "Crème brûlée", "Apfelmus"]
OFTEN = [90, 80, 70, 60, 50, 12, 9, 6, 3]
READ = ("orders of 2026.csv", "--user", "Customer No", "--item", "Dish ordered")


@pytest.fixture(autouse=True)
def files(folder):
    """Orders with semicolons, a byte order mark, gaps in the ids and spaces in names; a menu in lower case."""
    chance = random.Random(1)
    lines = ["Customer No;Ordered on;Dish ordered"]
    for _ in range(4000):
        customer = "" if chance.random() < 0.05 else 10_000 + chance.randrange(2000)
        day = f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
        lines.append(f"{customer};{day};{chance.choices(DISHES, OFTEN)[0]}")
    (folder / "orders of 2026.csv").write_text("\r\n".join(lines) + "\r\n", encoding="utf-8-sig")
    (folder / "menu.csv").write_text(menu(str.lower), encoding="utf-8")
    return folder


def menu(spell):
    return "No;Dish\n" + "".join(f"{i};{spell(dish)}\n" for i, dish in enumerate(DISHES))


def test_the_check_leads_to_the_right_column_and_spelling(call):
    code, out, _ = call("check", *READ, "--domain", "menu.csv:No")
    assert code == 1
    assert "is the domain 'menu.csv:Dish'?" in out
    _, out, _ = call("check", *READ, "--domain", "menu.csv:Dish")
    assert "such as 'Currywurst', which the domain has as 'currywurst': --item 'fold(trim(" in out
    assert re.search(r"\d+ of 4,000 rows \(\d\.\d%\) have no user", out)


def test_then_the_release_is_right(done, files):
    (files / "menu.csv").write_text(menu(str), encoding="utf-8")
    [advice] = done("check", *READ, "--domain", "menu.csv:Dish").partition("What to change:\n")[2].splitlines()
    assert "have no user and are dropped" in advice
    where = ("--where", "\"Ordered on\" >= DATE '2026-03-01'")
    released = done(
        "select",
        *READ,
        "--domain",
        "menu.csv:Dish",
        *where,
        "-k",
        "5",
        "--epsilon",
        "1",
        "--format",
        "items",
        "--quiet",
    )
    assert sorted(released.splitlines()) == sorted(DISHES[:5])
