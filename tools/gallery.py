"""Make pictures of all that readers see, to look at: every plot, and the pages of a site, of a study and of a plan.

    python tools/gallery.py FOLDER [PAGE ...]

Each plot is drawn light, dark, in grey and, if it has a language, in German. A site is published from made-up events in
each language, with a ledger of its own: open trends, a chart by country, settings that changed, and a corrected, a
withdrawn and a withheld period. Chromium photographs its pages and each PAGE: light, dark, in grey, on a phone, and as
PDF, whose pages become pictures where pdftoppm is installed.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "examples")]

import pyarrow as pa  # noqa: E402
import pyarrow.parquet  # noqa: E402
from PIL import Image  # noqa: E402

import browser  # noqa: E402
import discreet  # noqa: E402
import plots  # noqa: E402
from discreet.cli.app import app  # noqa: E402
from discreet.release.plots import render  # noqa: E402

VIEWS = {"light": (1100, False), "dark": (1100, True), "phone": (390, False)}
"""The width of each view of a page, and True for a dark one."""

MONTHS, LISTENERS = range(3, 11), 6000

TEXTS = {
    "en": {
        "title": "What people listen to",
        "note": "Made-up listeners of a radio station.",
        "unit": "listeners",
        "songs": "Songs of the month",
        "note_songs": "How many listeners heard a song at least once.",
        "countries": "Songs by country",
        "favourites": "Favourites of the month",
        "reason": "a day of events was missing",
        "items": [
            "Over the roofs", "Rain on Main Street", "Early spring", "Greetings from Cologne", "The miller's girl",
            "Night train to Lisbon", "A song with a name that is far too long for one line", "Sea, sand and sun",
            "Blue hour", "Slow waltz",
        ],
    },
    "de": {
        "title": "Was die Leute hören",
        "note": "Erfundene Hörerinnen und Hörer eines Senders.",
        "unit": "Hörerinnen und Hörer",
        "songs": "Lieder des Monats",
        "note_songs": "Wie viele Personen ein Lied mindestens einmal hörten.",
        "countries": "Lieder nach Land",
        "favourites": "Lieblingslieder des Monats",
        "reason": "die Ereignisse eines Tages fehlten",
        "items": [
            "Über den Dächern", "Regen auf der Hauptstraße", "Früher Frühling", "Grüße aus Köln", "Die Müllerin",
            "Nachtzug nach Lissabon", "Ein Lied mit einem Namen, der viel zu lang für eine Zeile ist",
            "Meer, Sand und Sonne", "Blaue Stunde", "Langsamer Walzer",
        ],
    },
}  # fmt: skip
"""All that a reader meets and the catalogue of texts does not have, by language."""

CHARTS = """title = "{title}"
note = "{note}"
language = "{language}"
ledger = "budget.db"
out = "{site}"

[defaults]
events = {{ table = "events.parquet", user = "listener", item = "song" }}
domain = "songs.csv:song"
label = "title"
time = "played_at"
every = "month"
from = "2025-03"

[[chart]]
id = "songs"
title = "{songs}"
note = "{note_songs}"
k = {k}
epsilon = "0.05"
counts = "0.1"
shortfall = "0.05"

[[chart]]
id = "countries"
title = "{countries}"
by = {{ column = "country", groups = ["AT", "CH", "DE", "LI"], each_user = "one" }}
k = 4
epsilon = "0.05"
counts = "0.1"
shortfall = "0.05"

[[chart]]
id = "favourites"
title = "{favourites}"
k = 3
epsilon = "0.05"
shortfall = "0.05"
withhold_above = 10
"""

PAGES = ("index", "songs", "songs.2025-09", "countries", "favourites", "favourites.2025-05", "favourites.2025-06",
         "favourites.2025-07", "statement")  # fmt: skip
"""The pages to photograph: settings changed in September, July was corrected, June withdrawn and May withheld."""


def main(folder: Path, pages: list[Path]) -> None:
    """Make all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawable in plots.make_results():
        light = render(drawable.plot(), "png")
        (folder / f"{name}-light.png").write_bytes(light)
        (folder / f"{name}-grey.png").write_bytes(_to_grey(light))
        (folder / f"{name}-dark.png").write_bytes(render(drawable.plot(dark=True), "png"))
        with contextlib.suppress(TypeError):
            (folder / f"{name}-german.png").write_bytes(render(drawable.plot(language="de"), "png"))
    pages = [*make_sites(folder), *pages]
    if browser.CHROMIUM is None:
        print("there is no Chromium here, so no page is photographed")
        return
    with browser.page(folder / "profile") as page:
        for path in pages:
            name = f"page-{path.parent.name}-{path.stem}"
            for view, (width, dark) in VIEWS.items():
                page.open(path.resolve(), width=width, dark=dark)
                page.ask("document.querySelectorAll('.over-time').forEach(each => { each.open = true })")
                photograph = page.screenshot()
                (folder / f"{name}-{view}.png").write_bytes(photograph)
                if view == "light":
                    (folder / f"{name}-grey.png").write_bytes(_to_grey(photograph))
            page.open(path.resolve())
            (folder / f"{name}.pdf").write_bytes(page.print_to_pdf())
            if shutil.which("pdftoppm"):
                subprocess.run(["pdftoppm", "-r", "60", "-png", f"{name}.pdf", f"{name}-print"], cwd=folder, check=True)
    print(f"wrote {len(list(folder.glob('*.png')))} pictures to {folder}")


def make_sites(folder: Path) -> Iterator[Path]:
    """Publish a site of made-up events in each language, and yield its pages to photograph."""
    for language, texts in TEXTS.items():
        charts = folder / f"charts-{language}"
        shutil.rmtree(charts, ignore_errors=True)
        charts.mkdir()
        lines = [f'{number},"{title}"\n' for number, title in enumerate(texts["items"])]
        (charts / "songs.csv").write_text("song,title\n" + "".join(lines), encoding="utf-8")
        pa.parquet.write_table(pa.Table.from_pylist(list(_make_events())), charts / "events.parquet")
        discreet.Ledger.create(charts / "budget.db", epsilon=5, every="year", since="2025-01-01", unit=texts["unit"])
        with contextlib.chdir(charts), contextlib.redirect_stdout(io.StringIO()):
            for k, as_of in ((4, "2025-09-01"), (5, "2025-11-01")):
                told = CHARTS.format(**texts, language=language, site=f"site-{language}", k=k)
                Path("charts.toml").write_text(told, encoding="utf-8")
                _run("publish", "charts.toml", "--yes", "--as-of", as_of)
            reason = ("--reason", texts["reason"])
            _run(
                "publish", "correct", "charts.toml", "favourites", "2025-07", *reason, "--yes", "--as-of", "2025-11-01"
            )
            _run("publish", "withdraw", "charts.toml", "favourites", "2025-06", *reason)
        yield from (charts / f"site-{language}" / f"{name}.html" for name in PAGES)


def _run(*arguments: str) -> None:
    code = app(list(arguments), standalone_mode=False)
    if code:
        raise SystemExit(f"discreet {' '.join(arguments)} ended with {code}")


def _make_events() -> Iterator[dict[str, object]]:
    """Yield who heard which song when; in May hardly anybody listened, and the last songs rise over the months."""
    rng = random.Random(1)  # noqa: S311
    for month in MONTHS:
        for listener in range(20 if month == 5 else LISTENERS):
            for song in range(10):
                if rng.random() < 0.6 / (1 + song) ** 0.7 + 0.02 * song * (month - MONTHS[0]) / len(MONTHS):
                    yield {
                        "listener": listener, "song": song, "country": ("DE", "DE", "AT", "CH")[listener % 4],
                        "played_at": datetime(2025, month, 1 + listener % 28, 12),
                    }  # fmt: skip


def _to_grey(png: bytes) -> bytes:
    """Return a picture without its colours, as paper shows it."""
    content = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("L").save(content, "png")
    return content.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
