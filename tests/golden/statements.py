"""Recorded statements for the engines that discreet was never run on, one file for each engine and feature.

`python tests/golden/statements.py` records them; `tests/sources/events/test_compiled.py` compares and parses them. A
changed statement is a statement to review again.
"""

from pathlib import Path

import discreet

RECORDED = Path(__file__).with_name("statements")

ENGINES = ["bigquery", "databricks", "snowflake", "trino"]

COLUMNS = {
    "customer": "string",
    "product": "string",
    "number": "int64",
    "amount": "float64",
    "price": "decimal(12, 2)",
    "country": "string",
    "day": "date",
    "at": "timestamp",
    "moment": "timestamp('UTC')",
}

PRODUCTS = ["tea", "it's \\ 😀", "rum "]
RANGE = discreet.integers(0, 99)

QUESTIONS = {
    "list": {"item": "product", "domain": PRODUCTS},
    "conditions": {
        "item": "product",
        "domain": PRODUCTS,
        "where": "trim(country) = 'DE' AND day >= DATE '2026-01-01' AND product LIKE 't%' "
        "AND amount < 2.5 AND price > 1.5",
        "during": discreet.month("at").only("2026-01"),
    },
    "groups": {
        "item": "product",
        "domain": PRODUCTS,
        "by": "country",
        "groups": ["DE", "FR"],
        "each_user": "many",
        "max_groups_per_user": 1,
    },
    "sums": {"item": "number", "domain": RANGE, "value": "price", "clip": (-5, 50), "resolution": "0.01"},
    "bounds": {"item": "product", "domain": PRODUCTS, "max_items_per_user": 2},
    "periods": {
        "item": "number",
        "domain": RANGE,
        "by": discreet.week("moment", "Europe/Berlin"),
        "groups": ["2026-W13", "2026-W14"],
        "each_user": "one",
    },
    "expressions": {
        "item": "lower(concat(product, '-', substring(country, 1, 2)))",
        "domain": ["tea-de"],
        "where": "number * number > 100 AND extract(month FROM day) = 12",
    },
    "discovery": {"item": "product", "domain": discreet.discovered("1e-6", 3)},
}


def ask(engine, question):
    """The source of a question to a table of an engine."""
    table = discreet.compiled(engine, "mart.sales", COLUMNS)
    return discreet.events(table, user="customer", **QUESTIONS[question])


def compile_statement(engine, question):
    """The statement; that of a discovery has the key that a release would draw."""
    source = ask(engine, question)
    query = source.make_query("a key") if question == "discovery" else source.make_query()
    return source._opened.table.get_backend().compile_with_lists(query) + "\n"


if __name__ == "__main__":
    for engine in ENGINES:
        for question in QUESTIONS:
            RECORDED.joinpath(f"{engine}-{question}.sql").write_text(
                compile_statement(engine, question), encoding="utf-8"
            )
