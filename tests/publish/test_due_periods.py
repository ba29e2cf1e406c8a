"""A period is due once it is over on the calendar of its zone, and not a second before."""

from datetime import UTC, datetime, timedelta

import pytest

import discreet
from chart_folder import SONGS, write_charts
from discreet.ledger.charges import parse_moment
from discreet.publish.charts_file import read_charts
from discreet.publish.editions import find_due_periods


def due(tmp_path, moment, more='every = "month"'):
    write_charts(tmp_path, SONGS.replace('every = "month"', more))
    return find_due_periods(read_charts(tmp_path / "charts.toml").charts[0], parse_moment(moment))


@pytest.mark.parametrize(
    ("every", "before", "after"),
    [
        ("day", "2026-10-30", "2026-10-31"),
        ("month", "2026-09", "2026-10"),
        ("quarter", "2026-Q3", "2026-Q3"),
        ("year", "2025", "2025"),
    ],
)
def test_the_last_period_that_ended_is_due(tmp_path, every, before, after):
    assert due(tmp_path, "2026-10-31T23:59:59", f'every = "{every}"') == [before]
    assert due(tmp_path, "2026-11-01", f'every = "{every}"') == [after]


def test_weeks_end_on_sundays(tmp_path):
    assert due(tmp_path, "2027-01-03T23:59:59", 'every = "week"') == ["2026-W52"]
    assert due(tmp_path, "2027-01-04", 'every = "week"') == ["2026-W53"]


def test_periods_end_by_the_clock_of_their_zone(tmp_path):
    berlin, new_york = 'every = "month"\nzone = "Europe/Berlin"', 'every = "month"\nzone = "America/New_York"'
    assert due(tmp_path, "2026-10-31T22:59:59", berlin) == ["2026-09"]
    assert due(tmp_path, "2026-10-31T23:00:00", berlin) == ["2026-10"]
    assert due(tmp_path, "2026-11-01T00:30:00", new_york) == ["2026-09"]
    assert due(tmp_path, "2026-11-01T04:00:00", new_york) == ["2026-10"]


def test_all_periods_from_the_first_are_due(tmp_path):
    since = 'every = "month"\nfrom = "2026-07"'
    assert due(tmp_path, "2026-11-01", since) == ["2026-07", "2026-08", "2026-09", "2026-10"]
    assert due(tmp_path, "2026-08-01", since) == ["2026-07"]
    assert due(tmp_path, "2026-07-31", since) == []
    assert due(tmp_path, "2026-05-01", 'every = "year"\nfrom = 2024') == ["2024", "2025"]
    assert due(tmp_path, "2026-05-03", 'every = "day"\nfrom = 2026-05-01') == ["2026-05-01", "2026-05-02"]


def test_a_chart_without_periods_has_one_release(tmp_path):
    write_charts(tmp_path, SONGS.replace('every = "month"\ntime = "played_at"\n', ""))
    assert find_due_periods(read_charts(tmp_path / "charts.toml").charts[0], parse_moment("2026-01-01")) == [None]


def test_moments_are_in_utc_unless_they_say_so():
    assert parse_moment("2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC)
    assert parse_moment("2026-11-01T06:00+01:00") == datetime(2026, 11, 1, 5, tzinfo=UTC)
    before = datetime.now(UTC)
    assert before <= parse_moment(None) <= before + timedelta(minutes=1)
    with pytest.raises(discreet.Error, match=r"as_of must be a day or a time .*, not 'soon'"):
        parse_moment("soon")
