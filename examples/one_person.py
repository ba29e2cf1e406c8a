"""Draw the effect of one person on a top 3: the picture of the README.

    python examples/one_person.py                 prints the chances
    python examples/one_person.py docs/assets     and draws docs/assets/one-person.svg

Six dishes and how many people had them, made up. Soup and salad are level until Ann comes, who had soup. A list that is
counted and sorted has salad without her and soup with her (of equals, the first by name): whoever sees both lists knows
what she ate. The chances of the private list are computed, by adding up those of all lists.
"""

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import discreet

sys.path.append(str(Path(__file__).parent / "gallery"))
from picture import FAINT, QUIET, RELEASED, drawing

WITHOUT = {"pizza": 96, "curry": 84, "salad": 65, "soup": 65, "stew": 57, "toast": 31}
WITH = {**WITHOUT, "soup": 66}
K, EPSILON = 3, "0.5"

Chances = dict[str, float]


def sorted_list(people: dict[str, int]) -> Chances:
    """Count and sort: each dish is on the list or is not."""
    first = sorted(people, key=lambda dish: (-people[dish], dish))[:K]
    return {dish: float(dish in first) for dish in people}


def private_list(people: dict[str, int]) -> Chances:
    """Return the chance of each dish to be released."""
    chances = dict.fromkeys(people, 0.0)
    for dishes in combinations(people, K):
        chance = discreet.subset_probability(people, dishes, EPSILON).value
        for dish in dishes:
            chances[dish] += chance
    return chances


PANELS = {"Count and sort: Ann's soup shows": sorted_list, f"discreet, epsilon {EPSILON}: hardly": private_list}


def main() -> None:
    """Print, and draw where a folder is given."""
    found = {title: (make(WITHOUT), make(WITH)) for title, make in PANELS.items()}
    for title, (without, given) in found.items():
        print(title)
        for dish in WITHOUT:
            print(f"  {dish:6} {without[dish]:6.1%} without Ann {given[dish]:6.1%} with her")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), found)


def draw(folder: Path, found: dict[str, tuple[Chances, Chances]]) -> None:
    """Two panels of paired bars."""
    with drawing(folder, "one-person", height=3.6, columns=2) as axes:
        for panel, (title, (without, given)) in zip(axes, found.items(), strict=True):
            bars(panel, without, given)
            panel.set_title(title, fontsize=11)
        axes[0].legend(loc="lower right")


def bars(panel: Any, without: Chances, given: Chances) -> None:
    """Draw a pair of bars for each dish, the first on top, with the chance behind each."""
    for chances, shift, colour, label in ((without, -0.2, FAINT, "without Ann"), (given, 0.2, RELEASED, "with Ann")):
        places = [place + shift for place in range(len(chances))]
        panel.barh(places, list(chances.values()), height=0.36, color=colour, label=label)
        for place, chance in zip(places, chances.values(), strict=True):
            panel.text(chance + 0.02, place, f"{chance:.0%}", va="center", fontsize=8, color=QUIET)
    panel.set_yticks(range(len(without)), list(without))
    panel.invert_yaxis()
    panel.set(xlim=(0, 1.15), xticks=[], xlabel=f"chance to be in the top {K}")
    panel.grid(visible=False)
    panel.spines["bottom"].set_visible(False)


if __name__ == "__main__":
    main()
