"""What `discreet.events` can do, feature by feature, and what it then finds; test_engine_features.py asks each one."""

from datetime import date

import pyarrow as pa

import discreet

USERS = range(60)
EVENTS = pa.table({
    "id": list(USERS),
    "who": [f"u{user}" for user in USERS],
    "what": ["Soup"] * 40 + ["SOUP"] * 20,
    "number": [7] * 40 + [8] * 20,
    "amount": [1.0] * 40 + [-2.0] * 20,
    "kept": [True] * 60,
    "day": [date(2026, 1, 15)] * 60,
    "spelled": ["15.01.2026"] * 60,
    "paid": ["1,5"] * 60,
})  # fmt: skip
"""Forty users of one thing and twenty of another, which a collation may equate."""

PLAIN = {"user": "id", "item": "number", "domain": [7, 8]}
TEXT = {"user": "who", "item": "what", "domain": ["Soup", "SOUP"]}
MANY = {"by": "kept", "groups": [True, False], "each_user": "many", "max_groups_per_user": 1}

FEATURES = {
    "numbers, dates and booleans": (PLAIN, 7),
    "`integers:LO:HI`": ({**PLAIN, "domain": discreet.integers(0, 10**5)}, 7),
    "conditions on numbers": ({**PLAIN, "where": "number + 1 = 9"}, 8),
    "sums": ({**PLAIN, "value": "amount", "clip": (-4, 4)}, 7),
    "bounds": ({**PLAIN, "max_items_per_user": 1}, 7),
    "groups": ({**PLAIN, "by": "kept", "groups": [True, False], "each_user": "one"}, 7),
    "text, by its bytes": (TEXT, "Soup"),
    "conditions on text": ({**TEXT, "where": "what LIKE 'SO%'"}, "SOUP"),
    "all strings": ({**TEXT, "domain": discreet.strings("OPSUopu", 4)}, "Soup"),
    "bounds on groups": ({**PLAIN, **MANY}, 7),
    "periods": ({**PLAIN, "during": discreet.month("day", "Europe/Berlin").only("2026-01")}, 7),
    "discovery": ({**TEXT, "domain": discreet.discovered("1e-6", 1)}, "Soup"),
    "dates in text": ({**PLAIN, "during": discreet.month("spelled").only("2026-01"), "date_format": "%d.%m.%Y"}, 7),
    "sums of text": ({**PLAIN, "value": "paid", "clip": (0, 4), "resolution": "0.5", "decimal": ","}, 7),
    "functions of text": ({**TEXT, "item": "replace(trim(what), 'S', 's')", "domain": ["soup", "sOUP"]}, "soup"),
    "`fold`": ({**TEXT, "item": "fold(what)", "domain": ["soup", "tea"]}, "soup"),
    "parts of dates": ({**PLAIN, "item": "extract(month FROM day)", "domain": [1, 2]}, 1),
    "a million items and more": ({**PLAIN, "domain": discreet.integers(0, 2**40)}, 7),
}
"""The arguments of `events` beside the table, and the most frequent item, in the order of the page."""
