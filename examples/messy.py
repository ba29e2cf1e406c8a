"""Makes purchases as a spreadsheet exports them in German, and clean public lists: synthetic, the same everywhere.

The file has semicolons, is in latin-1, and writes dates like 3.11.2026, prices like 1.234,50, and articles and Länder
in any case, with spaces. Each Land has a favourite of its own in each month, and a second one.

    python examples/messy.py demo/
"""

import random
import sys
from pathlib import Path

ARTICLES = ["Käse", "Brötchen", "Äpfel", "Müsli", "Honig", "Tee"]
LANDS = ["Baden-Württemberg", "Bayern", "Thüringen"]
MONTHS = [10, 11, 12]
BUYERS = {"favourite": 240, "second": 120, "other": 15}


def ranking(land: str, month: int) -> list[str]:
    """Return the articles in the order of their buyers in a Land and a month of 2026."""
    first = (2 * LANDS.index(land) + MONTHS.index(month)) % len(ARTICLES)
    return ARTICLES[first:] + ARTICLES[:first]


def purchases() -> list[str]:
    """Return the lines of the file: everybody buys one thing, and a few amounts are large."""
    chance, lines, customer = random.Random(7), [], 1000
    for land in LANDS:
        for month in MONTHS:
            for place, article in enumerate(ranking(land, month)):
                for buyer in range(list(BUYERS.values())[min(place, 2)]):
                    customer += 1
                    spelled = [article, article.upper(), f" {article.lower()}"][buyer % 3]
                    place_of_sale = [land, land.upper(), f"{land} "][buyer % 5 % 3]
                    day = f"{chance.randint(1, 28)}.{month}.2026"
                    price = (
                        "1.234,50" if chance.random() < 0.01 else f"{chance.randint(9, 15)},{chance.randint(10, 99)}"
                    )
                    lines.append(f"{customer};{spelled};{place_of_sale};{day};{price}")
    chance.shuffle(lines)
    return lines


def main() -> None:
    """Write purchases.csv, articles.csv and lands.csv into the folder given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(["Kunde;Artikel;Land;Kaufdatum;Preis", *purchases()]) + "\n"
    (folder / "purchases.csv").write_text(text, encoding="latin-1")
    (folder / "articles.csv").write_text("\n".join(["Artikel", *ARTICLES]) + "\n", encoding="utf-8")
    (folder / "lands.csv").write_text("\n".join(["Land", *LANDS]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
