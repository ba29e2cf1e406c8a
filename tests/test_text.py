"""Numbers, labels and tables as text."""

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.text import (
    align_columns,
    count_with_commas,
    decimal,
    decimal_above,
    duration,
    escape_line,
    number_for_programs,
    printable,
    round_down,
    round_up,
    three_digits,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1, 10), "0.1"),
        (Fraction(-1, 3), "-1/3"),
        (Fraction(10**18 + 1, 10**18), "about 1"),
        (Fraction(1, 3 * 10**30), "about 3.33333333333e-31"),
        (Fraction(1, 10**400), "almost 0"),
        (Fraction(3 * 10**300 + 1), "about 10^300"),
    ],
)
def test_a_fraction_is_a_decimal_where_that_is_exact_and_short(number, text):
    assert decimal(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *[(Fraction(0), "0"), (Fraction(1, 10), "0.1"), (Fraction(2, 3), "2/3")],
        (Fraction(10**18 + 1, 10**18), "1.00000000001 (rounded up)"),
        (Fraction(10**13 - 1, 10**13) + Fraction(1, 10**30), "1 (rounded up)"),
        (Fraction(1, 3 * 10**30), "3.33333333334e-31 (rounded up)"),
        (Fraction(1, 3 * 10**400), "3.33333333334e-401 (rounded up)"),
        (Fraction(3 * 10**300 + 1), "3.00000000001e+300 (rounded up)"),
    ],
)
def test_a_promised_number_is_never_below_the_exact_one(number, text):
    assert decimal_above(number) == text
    exact = Fraction(text.removesuffix(" (rounded up)"))
    assert number <= exact <= number * (1 + Fraction(1, 10**11))


@pytest.mark.parametrize(
    ("count", "people", "programs"),
    [
        (1234567, "1,234,567", "1234567"),
        (-1234, "-1,234", "-1234"),
        (Fraction(-5, 2), "-2.5", "-2.5"),
        (Fraction(1, 3), "1/3", "1/3"),
        (Fraction(10**21 + 1, 10**20), "about 10", f"{10**21 + 1}/{10**20}"),
        (Fraction(10**21), "1e+21", "1e+21"),
    ],
)
def test_a_count_for_people_and_for_programs(count, people, programs):
    assert (count_with_commas(count), number_for_programs(count)) == (people, programs)


def test_numbers_of_more_digits_than_python_spells_are_rounded():
    for number in (Fraction(10**5000 + 1, 3), Fraction(10**5000 + 1, 10**5000), Fraction(1, 10**5000 + 1)):
        assert decimal(number).startswith(("about ", "almost "))
        above, up, down = (spell(number) for spell in (decimal_above, round_up, round_down))
        assert Fraction(down) <= number <= Fraction(up) <= number * (1 + Fraction(1, 10**3))
        assert number <= Fraction(above.removesuffix(" (rounded up)")) <= number * (1 + Fraction(1, 10**11))


def test_counts_of_more_digits_than_python_spells():
    assert count_with_commas(-(10**4500)) == "-1" + ",000" * 1500
    assert count_with_commas(Fraction(10**4500)) == "about 10^4500"
    assert number_for_programs(-(10**4500)) == "-1" + "0" * 4500
    assert number_for_programs(Fraction(-(10**4500), 3)) == "-1" + "0" * 4500 + "/3"
    assert number_for_programs(Fraction(10**4500)) == "1" + "0" * 4500


def test_numbers_have_three_digits():
    values = (0, 0.00123456, 0.5, 12.345, 1234.5, 2.5e-7, -3e7)
    assert [three_digits(value) for value in values] == [
        *("0", "0.00123", "0.500", "12.3", "1,234", "2.50e-07", "-3.00e+07")
    ]


def test_times_have_a_unit_that_suits_them():
    assert [duration(value) for value in (2e-6, 0.0123, 4, 90)] == ["2.00 µs", "12.3 ms", "4.00 s", "1.50 min"]


@pytest.mark.parametrize(
    ("label", "shown", "line"),
    [
        ("a\nb", r"a\nb", r"a\nb"),
        ("\x1b[31m", r"\x1b[31m", r"\x1b[31m"),
        ("back\\slash", r"back\slash", r"back\\slash"),
        ("\ud800", r"\ud800", r"\ud800"),
        ("caf\xe9 \u65e5\u672c", "caf\xe9 \u65e5\u672c", "caf\xe9 \u65e5\u672c"),
        (7, "7", "7"),
    ],
)
def test_a_label_stays_on_its_line(label, shown, line):
    assert (printable(label), escape_line(label)) == (shown, line)


def test_an_escaped_line_can_be_read_back():
    label = "".join(map(chr, range(0x100))) + "\u2028\u2029\udc80"
    assert len(escape_line(label).splitlines()) == 1
    assert escape_line(label).encode("latin-1").decode("unicode_escape") == label


def test_columns_are_as_wide_as_their_widest_cell():
    rows = [("item", "about"), ("a", "1,000"), ("banana", "7")]
    assert align_columns(rows) == ["item    about", "a       1,000", "banana  7"]
    assert align_columns(rows, numbers=True) == ["item    about", "a       1,000", "banana      7"]


def test_rows_of_a_table_have_as_many_cells():
    with pytest.raises(ValueError, match="shorter"):
        align_columns([("a", "b"), ("c",)])


def test_columns_are_aligned_by_the_places_that_characters_take():
    rows = [("寿司", "7"), ("cre\u0300me", "12"), ("pizza", "3")]
    assert align_columns(rows, numbers=True) == ["寿司    7", "cre\u0300me  12", "pizza   3"]


@given(st.fractions(min_value=0))
def test_what_is_rounded_up_is_never_below_and_what_is_rounded_down_never_above(number):
    above, below = Fraction(round_up(number)), Fraction(round_down(number))
    # Beside what a float has, which is not meant.
    assert below * (1 - Fraction(1, 10**14)) <= number <= above * (1 + Fraction(1, 10**14))
    assert above - number <= number / 1000
    assert number - below <= number / 1000


@given(st.decimals(0, 10**6, places=4))
def test_short_decimals_are_not_rounded(number):
    assert Fraction(round_up(Fraction(number))) == Fraction(round_down(Fraction(number))) == Fraction(number)


@pytest.mark.parametrize(
    ("number", "up", "down"),
    [
        (Fraction(1, 3), "0.3334", "0.3333"),
        (Fraction(200, 3), "66.67", "66.66"),
        (Fraction(1, 3 * 10**9), "3.334e-10", "3.333e-10"),
        (Fraction(10**500, 3), "3.334e+499", "3.333e+499"),
        (Fraction(10**400), "1e+400", "1e+400"),
        (Fraction(0), "0", "0"),
        (Fraction(0.1) * 3, "0.3", "0.3"),
        (1 - Fraction(0.1), "0.9", "0.9"),
        (Fraction(10**18 + 1, 10**18), "1.00000000001", "1"),
        (Fraction(1, 10) + Fraction(1, 10**13), "0.100000000001", "0.1"),
        (Fraction(1, 10) + Fraction(1, 10**12), "0.100000000001", "0.100000000001"),
    ],
)
def test_four_digits_are_kept(number, up, down):
    assert (round_up(number), round_down(number)) == (up, down)


def test_a_short_form_never_tells_less_than_was_spent():
    release = discreet.top_k({"a": 3, "b": 1}, k=1, epsilon="1/3")
    assert repr(release) == f"Release({release.items}, k=1, epsilon=0.3334)"
    assert "Privacy: epsilon 0.3334 for each person" in str(release)
    table = pa.table({"who": [1], "what": ["a"], "land": ["x"]})
    source = discreet.events(
        table, user="who", item="what", domain=["a", "b"], by="land", groups=["x"], each_user="one"
    )
    assert repr(discreet.top_k(source, k=1, epsilon="1/3")) == "GroupedRelease(1 group, k=1, epsilon=0.3334)"
    assert "epsilon = 0.3334" in repr(discreet.sketch([3, 1], epsilon="1/3", ranks=[1]))


def test_what_dataclasses_hold_is_shown_in_decimals(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="readers")
    release = discreet.top_k({"a": 3, "b": 1}, k=1, epsilon="1/3", ledger=ledger)
    assert repr(release.guarantee).startswith("Guarantee(epsilon=0.3334, adjacency='add-remove', sensitivity=Sensi")
    assert repr(ledger.composition) == "Composition(epsilon=0.3334, rho=0.01389, delta=0)"
    assert repr(ledger.budget).startswith("Budget(epsilon=1, delta=None, adjacency='add-remove', unit='readers'")
    assert ", epsilon=0.3334, zcdp=0.01389, delta=0, " in repr(ledger.history()[0])
    assert repr(discreet.Count("a", Fraction(25, 2), 12, 13)) == "Count(item='a', value=12.5, low=12, high=13)"
    assert "Fraction" not in repr(discreet.expected([9, 5, 1], k=1, epsilon=1, counts=1))
    assert (release.guarantee.epsilon, ledger.composition.epsilon) == (Fraction(1, 3), Fraction(1, 3))
