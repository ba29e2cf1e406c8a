"""Each language has every text, with the same fields, and no text that nobody asks for."""

import ast
import re
from fractions import Fraction
from pathlib import Path
from string import Formatter

import pyarrow as pa
import pytest

import discreet
from discreet.errors import InvalidValueError
from discreet.language import LANGUAGES, Language, find_language, read_catalogue
from discreet.privacy import RENEWALS
from discreet.release.statement import LIMITS

SOURCE = Path(discreet.__file__).parent


def forms(text):
    return [text] if isinstance(text, str) else [text["one"], text["other"]]


def fields(text):
    """The fields of a text; a form for one may leave out what only the other form says."""
    return {name for form in forms(text) for _, name, _, _ in Formatter().parse(form) if name is not None}


def find_asked():
    """The keys in code and templates: constants, and those made from the names of limits and periods."""
    asked = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                asked.add(node.value)
    for path in SOURCE.rglob("*.html"):
        asked |= set(re.findall(r'\bt\(["\']([\w.]+)["\']', path.read_text(encoding="utf-8")))
    asked |= {f"limit.{limit.name}.{part}" for limit in LIMITS for part in ("heading", "sentence")}
    asked |= {f"{part}.{every}" for part in ("seen", "every", "renews", "span", "years") for every in RENEWALS}
    asked |= {f"seen.{name}" for name in ("list", "lists", "curve")}
    asked |= {f"statement.{name}" for name in ("who", "others", "version", "pad_to", "source", "rows")}
    asked |= {f"noise.{kind}" for kind in ("counts", "scale", "unknown", "curve")}
    return asked


def test_all_languages_have_the_same_texts_with_the_same_fields():
    catalogues = [read_catalogue(code) for code in LANGUAGES]
    assert len(catalogues) == len(list((SOURCE / "language").glob("*.toml"))) == 2
    english, german = catalogues
    assert english.keys() == german.keys()
    for key, text in english.items():
        assert type(text) is type(german[key]), key
        assert fields(text) == fields(german[key]), key
        # An empty text is one that no statement shows.
        assert [bool(form) for form in forms(text)] == [bool(form) for form in forms(german[key])], key


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_text_with_a_count_has_a_form_for_one(code):
    texts = read_catalogue(code).items()
    assert [key for key, text in texts if isinstance(text, str) and "{count}" in text] == []
    assert [key for key, text in texts if isinstance(text, dict) and "count" not in fields(text)] == []


def test_one_is_singular():
    rows = pa.table({"who": list(range(90)), "what": ["a"] * 90, "land": ["x"] * 90})
    terms = discreet.discovered("1e-6", 1, method="gaussian")
    by = {"by": "land", "groups": ["x", "y"], "each_user": "many"}
    found = discreet.top_k(discreet.events(rows, user="who", item="what", domain=terms, **by), 1, 9)
    moved = discreet.Sensitivity(down=0, up=1, items=1)
    release = discreet.top_k({"a": 3, "b": 1}, 1, 1, sensitivity=moved)
    sketch = discreet.sketch([9], 1, ranks=[1])
    texts = [found.statement(), str(release), release.statement(), sketch.statement(), str(sketch)]
    english = "\n".join(texts)
    assert "Of each person at most 1 item in each of at most 2 groups counts for that." in english
    assert "who adds at most 1 to at most 1 score" in english
    assert "never down, and at most 1 score; " in english
    assert "# Noisy score at 1 public rank of 1 item\n" in english
    assert "Score at 1 rank of 1 item, noise" in english
    told = "\n".join([each.statement(language="de") for each in (found, release, sketch)])
    assert "Von jeder Person zählt dafür höchstens 1 Eintrag in jeder von höchstens 2 Gruppen." in told
    assert "es ändert sich höchstens 1 Wert;" in told
    assert "# Verrauschter Wert an 1 öffentlichem Rang von 1 Eintrag\n" in told
    for plural in (r"1 items", r"1 scores", r"1 ranks", r"1 groups", r"1 Einträge", r"1 Werte", "1 Gruppen"):
        assert not re.search(rf"(?<![\d,.]){plural}\b", english + told), plural


def test_every_text_is_asked_for_and_every_key_that_is_asked_for_is_there():
    keys, asked = set(read_catalogue("en")), find_asked()
    assert keys <= asked, keys - asked
    tables = {key.partition(".")[0] for key in keys if "." in key}
    wanted = {key for key in asked if re.fullmatch(r"[a-z]+\.\w+(\.\w+)?", key) and key.partition(".")[0] in tables}
    assert wanted - keys == {"statement.md", "statement.yaml", "statement.html"}


def test_numbers_and_dates_follow_the_language():
    english, german = map(Language, LANGUAGES)
    assert german.above(Fraction(1, 3)) == "1/3"
    assert german.above(Fraction(10**18 + 1, 10**18)) == "1,00000000001 (aufgerundet)"
    assert english.above(Fraction(10**18 + 1, 10**18)) == "1.00000000001 (rounded up)"
    assert german.exact(Fraction(10**400)) == "etwa 10^400"
    assert (german.spell(1234567), german.spell(Fraction(5, 2)), german.spell(True)) == ("1.234.567", "2,5", True)
    assert german.moment("2026-02-01T09:30:00Z") == "1. Februar 2026, 09:30 Uhr (UTC)"
    assert [german.period(each) for each in ("2026-03", "2026-W05", "2026-Q1", "2026", None)] == [
        "März 2026", "5. Woche 2026", "1. Quartal 2026", "2026", "",
    ]  # fmt: skip


@pytest.mark.some(1)
@pytest.mark.parametrize("given", ["fr", "", None, ["de"]])
def test_an_unknown_language_is_refused(given):
    release = discreet.top_k({"a": 3, "b": 1}, k=1, epsilon=1)
    with pytest.raises(InvalidValueError, match="language must be one of en, de, not"):
        find_language(given)
    with pytest.raises(InvalidValueError, match="language must be one of en, de, not"):
        release.statement(language=given)


def test_a_german_statement_has_no_english_sentence(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=3, every="year", unit="Hörerinnen und Hörer")
    release = discreet.top_k(
        {"a": 912, "b": 877, "c": 4}, k=2, epsilon="0.3", counts="0.05", shortfall="0.05", ledger=ledger
    )
    text = release.statement(ledger, source="postgresql", language="de")
    assert "| Epsilon | 0,4 (0,3 für die Auswahl, 0,05 für die Zahlen, 0,05 für die Güte der Liste) |" in text
    assert "Eine Person, die diese Liste sieht und es vorher für 50\xa0% wahrscheinlich hielt, dass" in text
    assert "Eine Person, die alle Listen sieht, die dieses Budget in einem Kalenderjahr erlaubt, und es vorher" in text
    assert "hält es danach für höchstens 59,9\xa0% wahrscheinlich." in text
    words = set(re.findall(r"\b[a-z]+\b", re.sub(r"`[^`]*`|Canonical\(.*?\)", "", text)))
    assert not words & {"the", "of", "is", "and", "that", "with", "a"}
