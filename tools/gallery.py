"""Make pictures of all that readers see, to look at: every plot, and the pages of a site, of a study and of a plan.

    python tools/gallery.py FOLDER [PAGE ...]

Each plot is drawn light, dark, in grey and, if it has a language, in German. A site of made-up events is made in both
languages and photographed by Chromium, and so is each PAGE: light, dark, in grey, on a phone and as printed.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "examples")]

from PIL import Image  # noqa: E402

import browser  # noqa: E402
import chart_folder  # noqa: E402
import plots  # noqa: E402
from discreet.publish.charts_file import read_charts  # noqa: E402
from discreet.publish.pages import list_files  # noqa: E402
from discreet.publish.run import make_dummy_site  # noqa: E402
from discreet.release.plots import render  # noqa: E402

CHARTS = chart_folder.SONGS.replace("k = 3", 'k = 3\nshortfall = "0.5"\nfrom = "2025-03"') + chart_folder.ARTISTS
VIEWS = {"light": (1100, False), "dark": (1100, True), "phone": (390, False), "print": (800, False)}
"""The width of each view of a page, and True for a dark one."""


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
            for view, (width, dark) in VIEWS.items():
                page.open(path.resolve(), width=width, dark=dark)
                if view == "print":
                    page.print_as_paper()
                name = f"page-{path.parent.name}-{path.stem}"
                photograph = page.screenshot()
                (folder / f"{name}-{view}.png").write_bytes(photograph)
                if view == "light":
                    (folder / f"{name}-grey.png").write_bytes(_to_grey(photograph))
    print(f"wrote {len(list(folder.glob('*.png')))} pictures to {folder}")


def make_sites(folder: Path) -> Iterator[Path]:
    """Write a site of made-up events in each language, and yield its pages of the last period."""
    for language in ("en", "de"):
        charts = folder / f"charts-{language}"
        charts.mkdir(exist_ok=True)
        if not (charts / "streams").exists():
            chart_folder.fill_folder(charts, CHARTS)
        chart_folder.write_charts(charts, CHARTS, f'{chart_folder.HEAD}language = "{language}"\n')
        site = folder / f"site-{language}"
        moment = datetime.fromisoformat("2025-11-01T00:00:00+00:00")
        for name, text in list_files(make_dummy_site(read_charts(charts / "charts.toml"), moment)).items():
            (site / name).parent.mkdir(parents=True, exist_ok=True)
            (site / name).write_text(text, encoding="utf-8")
        yield from (site / f"{name}.html" for name in ("index", "songs", "artists", "statement"))


def _to_grey(png: bytes) -> bytes:
    """Return a picture without its colours, as paper shows it."""
    content = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("L").save(content, "png")
    return content.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
