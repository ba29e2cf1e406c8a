"""Scores that pandas and polars made: value_counts(), groupby results and frames, and what their items give away."""

import pandas
import polars
import pytest

import discreet

CATALOGUE = ["alien", "dune", "heat", "solaris"]

# heat has one viewer, user 9, and nobody saw solaris; user 1 saw dune twice.
ROWS = [(1, "dune"), (1, "dune"), (2, "dune"), (3, "dune"), (2, "alien"), (4, "alien"), (9, "heat")]
WITHOUT = [row for row in ROWS if row[0] != 9]
CERTAIN = 1000


def pandas_rows(rows):
    return pandas.DataFrame(rows, columns=["user_id", "movie"])


def polars_rows(rows):
    return polars.DataFrame(rows, schema=["user_id", "movie"], orient="row")


def by_value_counts(rows):
    return pandas_rows(rows).drop_duplicates()["movie"].value_counts()


def by_groupby(rows):
    return pandas_rows(rows).groupby("movie")["user_id"].nunique()


def by_polars(rows):
    frame = polars_rows(rows).group_by("movie").agg(polars.col("user_id").n_unique().alias("users"))
    return frame.sort("users", descending=True)


def in_catalogue(made):
    """The scores of all public items, as the page says; (scores, labels)."""
    if isinstance(made, pandas.Series):
        return made.reindex(CATALOGUE, fill_value=0), None
    frame = polars.DataFrame({"movie": CATALOGUE}).join(made, on="movie", how="left")
    frame = frame.with_columns(polars.col("users").fill_null(0))
    return frame["users"], frame["movie"]


def as_made(made):
    return (made, None) if isinstance(made, pandas.Series) else (made["users"], made["movie"])


MAKERS = [by_value_counts, by_groupby, by_polars]


@pytest.mark.parametrize("make", MAKERS)
def test_labels_and_scores_are_found(make):
    scores, labels = in_catalogue(make(ROWS))
    release = discreet.top_k(scores, 2, CERTAIN, labels=labels, counts=CERTAIN)
    assert release.items == ["alien", "dune"]
    # The scores are whole numbers still, and count people: three saw dune, one of them twice.
    assert [(count.item, count.value) for count in release.counts] == [("dune", 3), ("alien", 2)]
    assert release.d == 4


@pytest.mark.parametrize("make", MAKERS)
def test_a_list_from_the_data_gives_a_person_away(make):
    """With the only viewer of heat the list has an item more, whatever epsilon is; with a catalogue nothing shows."""
    wrong, right = [], []
    for rows in (ROWS, WITHOUT):
        scores, labels = as_made(make(rows))
        wrong.append(discreet.top_k(scores, len(scores), "1e-9", labels=labels))
        scores, labels = in_catalogue(make(rows))
        right.append(discreet.top_k(scores, len(scores), "1e-9", labels=labels))
    assert [release.items for release in wrong] == [["alien", "dune", "heat"], ["alien", "dune"]]
    assert wrong[0].guarantee.epsilon == wrong[1].guarantee.epsilon == 0
    assert [release.items for release in right] == [CATALOGUE, CATALOGUE]


def test_a_missing_score_is_refused():
    """A catalogue without fill_value leaves a hole where nobody was."""
    with pytest.raises(discreet.Error, match="scores must be finite numbers, and one of them is not"):
        discreet.top_k(by_groupby(ROWS).reindex(CATALOGUE), 2, 1)
    joined = polars.DataFrame({"movie": CATALOGUE}).join(by_polars(ROWS), on="movie", how="left")
    with pytest.raises(discreet.Error, match="scores must be finite numbers, and one of them is not"):
        discreet.top_k(joined["users"], 2, 1, labels=joined["movie"])


def test_rows_are_not_people():
    """Counting rows, one person moves a score by more than 1; dropping duplicates, by 1 at most."""

    def moved(make):
        before, after = make([]).reindex(CATALOGUE, fill_value=0), make(ROWS[:2]).reindex(CATALOGUE, fill_value=0)
        return (after - before).max()

    assert moved(lambda rows: pandas_rows(rows)["movie"].value_counts()) == 2
    assert moved(by_value_counts) == moved(by_groupby) == 1


def test_the_order_of_value_counts_is_not_released():
    ranked = by_value_counts(ROWS).reindex(["solaris", "dune", "alien", "heat"], fill_value=0)
    assert discreet.top_k(ranked, 3, CERTAIN).items == ["alien", "dune", "heat"]


def test_whole_numbers_as_items():
    """An index of numbers is one of labels, in any order, also where it looks like positions."""
    counts = pandas.Series([7, 7, 7, 2, 2, 0]).value_counts()
    assert discreet.top_k(counts, 2, CERTAIN).items == [2, 7]
    assert discreet.top_k(counts.reindex(range(8), fill_value=0), 2, CERTAIN).items == [2, 7]


def test_several_columns_and_categories():
    rows = pandas_rows(ROWS).assign(country=["de", "de", "fr", "fr", "fr", "de", "de"])
    catalogue = pandas.MultiIndex.from_product([["de", "fr"], CATALOGUE])
    scores = rows.groupby(["country", "movie"])["user_id"].nunique().reindex(catalogue, fill_value=0)
    release = discreet.top_k(scores, 1, CERTAIN)
    assert (release.items, release.d) == ([("fr", "dune")], 8)
    # A column of public categories lists them all by itself, if it is asked to.
    listed = rows.assign(movie=pandas.Categorical(rows["movie"], CATALOGUE))
    scores = listed.groupby("movie", observed=False)["user_id"].nunique()
    assert discreet.top_k(scores, 4, 1).items == CATALOGUE


def test_a_whole_frame_is_told_to_pass_its_column():
    for frame, name in (
        (pandas_rows(ROWS), "pandas DataFrame"),
        (by_groupby(ROWS).reset_index(), "pandas DataFrame"),
        (polars_rows(ROWS), "polars DataFrame"),
        (polars_rows(ROWS)["movie"].value_counts(), "polars DataFrame"),
        (polars_rows(ROWS).lazy(), "polars LazyFrame"),
    ):
        with pytest.raises(discreet.Error, match=f"scores must be one column, not a {name}: pass the column"):
            discreet.top_k(frame, 1, 1)


@pytest.mark.parametrize("rows", [pandas_rows, polars_rows])
def test_events_do_all_of_it(rows):
    source = discreet.events(rows(ROWS), user="user_id", item="movie", domain=CATALOGUE)
    release = discreet.top_k(source, 2, CERTAIN, counts=CERTAIN)
    assert [(count.item, count.value) for count in release.counts] == [("dune", 3), ("alien", 2)]
    assert release.d == 4
