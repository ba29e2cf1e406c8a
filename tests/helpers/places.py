"""The two places of a ledger for the tests: a file, and a table of a PostgreSQL server that the tests start."""

import sqlite3
import uuid
from contextlib import closing

import pytest

from engines import on_server

PLACES = ["file", on_server("postgres")]


@pytest.fixture
def place(request, tmp_path):
    """Makes a name for a ledger that does not exist yet, in each of the places."""
    return new_place(request.param, request, tmp_path)


def new_place(kind, request, tmp_path):
    name = f"ledger_{uuid.uuid4().hex[:8]}"
    if kind == "file":
        return str(tmp_path / f"{name}.db")
    return f"{request.getfixturevalue('postgres')}&ledger={name}"


def put_back(place, rows):
    """Puts the records back that were changed."""
    if not place.startswith("postgres"):
        with closing(sqlite3.connect(place)) as connection, connection:
            connection.execute("DELETE FROM records")
            connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
        return
    import psycopg

    url, _, name = place.partition("&ledger=")
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM public.{name}")  # noqa: S608  # a name of our own
        cursor.executemany(f"INSERT INTO public.{name} VALUES (%s, %s, %s, %s, %s)", rows)  # noqa: S608


def run_sql(place, *statements):
    """Changes what is kept, as somebody with the right to do so can; "records" is the table."""
    if not place.startswith("postgres"):
        with closing(sqlite3.connect(place)) as connection, connection:
            return [connection.execute(statement).fetchall() for statement in statements]
    import psycopg

    url, _, name = place.partition("&ledger=")
    found = []
    with psycopg.connect(url) as connection:
        for statement in statements:
            cursor = connection.execute(statement.replace("records", f"public.{name}"))
            found.append(cursor.fetchall() if cursor.description else [])
    return found
