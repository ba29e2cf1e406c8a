"""Where cells and levels around nested classes are: few, and such that their bounds waste little.

They begin where k and m alone say, and are cut while the bounds exceed what they likely bound by much. Floats choose,
and any choice is valid.
"""

from __future__ import annotations

import numpy as np

from discreet.exact.arrays import Floats, Ranks, count_up, sorted_distinct
from discreet.exact.boxes import choose_wasteful
from discreet.exact.nested import Cells, Enclosure, Levels, Side
from discreet.exact.nested_plan import ALL, RISE, Plan, make_plan
from discreet.exact.sizes import log_sizes, log_sum_exp

WASTE = 0.6
"""By which share of all the bounds may exceed it for each of three reasons: wide cells of a or of b, and far levels."""

PIECES = 32
"""Into how many pieces a cell is cut at most at once."""

MOST = 2048
"""How many there are at most after those that matter are cut for the first time."""

EASY = 3.0
"""Up to which bound on the mass of all classes, where the top-k alone weighs 1, cells need not be cut."""

EVEN = 1.0
"""Down to which log mass of the largest a alone, beside all a together, they may be one cell: bounds with all mass at
the largest a are then at most e times too high."""


def begin(top: Side, bottom: Side) -> Enclosure:
    """Planned cells around all classes, whose bounds are little above them for nearly all masses.

    Those of many sides at once are all alike.
    """
    plan = make_plan(top.last, bottom.last)
    if (known := bottom.known_last) < 1:
        bottom.sort_all()
        known = bottom.last
    is_known = known == bottom.last
    first, last, bounds = plan.b if is_known else _end_with(plan, known)
    b = Cells.in_a_row(bottom, first, last)
    log_masses = b.log_mass + bounds
    a, levels = plan.every_a, plan.line.largest
    if _are_easy(log_masses):
        return Enclosure(a, b, levels, log_masses)
    # Where not all b are known, cells are cut anyhow, and those of a with them.
    if not (is_known and is_flat(top)):
        a = Cells.in_a_row(top, *plan.line.a)
        levels = Levels(levels.b, _log_r(plan, a, b, log_masses))
        # One side has few masses where scores are equal; many sides have them at different places.
        if a.log_mass.ndim == 1 and 2 * np.count_nonzero(has_mass := a.log_mass > -np.inf) <= len(has_mass):
            a = a[has_mass]
        if not is_known:
            return Enclosure.of(a, b, levels)
        bounds = levels.bound(plan.at_last)
        log_masses = b.log_mass + bounds
    if plan.line.pieces == 1 or b.log_mass.ndim > 1 or _are_easy(log_masses):
        return Enclosure(a, b, levels, log_masses)
    heavy = _find_heavy(log_masses, _heaviest(b, bounds))
    return Enclosure.of(a, _cut_in_a_row(b, *heavy, plan.line.pieces, bottom), levels)


def is_flat(top: Side) -> bool:
    """Whether the largest a has so much of the mass of all a, which are not many, that they need not be told apart."""
    return top.last <= ALL and top.is_last_above(-EVEN)


def _log_r(plan: Plan, a: Cells, b: Cells, log_masses: Floats) -> Floats:
    """Log R at levels beside cells of b that may be heavy, and at others what it is with all mass at the largest a.

    `log_masses` are the bounds on cells of b with all mass at the largest a.
    """
    if plan.line.pieces == 1 or b.first is not plan.b[0] or b.log_mass.ndim > 1:
        return plan.line.sums.log_sums(a.log_mass)
    # Some of the mass is there.
    first, end = _find_heavy(log_masses, max(0.0, _heaviest(b, plan.b[2]) + float(a.log_mass[-1])))
    level = plan.at_last.level
    # And one level more on either side.
    beside = slice(max(0, int(level[first]) - 1), int(level[end - 1]) + 3)
    log_r = plan.line.largest.log_r.copy()
    log_r[beside] = plan.line.sums.log_sums(a.log_mass, beside)
    return log_r


def _heaviest(b: Cells, bounds: Floats) -> float:
    """About the largest log mass of a cell of b, by what bounds it where the one before it ends.

    The first cell is the top-k alone.
    """
    return max(float(b.log_mass[0]), float((b.log_mass[1:] + bounds[:-1]).max(initial=-np.inf)))


def _find_heavy(log_masses: Floats, heaviest: float) -> tuple[int, int]:
    """From which to before which cell all are that may have a mass to speak of."""
    found = (log_masses > min(heaviest, float(log_masses[log_masses.argmax()])) - _LIGHT).nonzero()[0]
    return int(found[0]), int(found[-1]) + 1


_LIGHT = 8.0
"""By how much the bound on a cell is below what the heaviest one likely has, if it does not matter."""


def _end_with(plan: Plan, known: int) -> tuple[Ranks, Ranks, Floats]:
    """The planned cells of b up to the last index that is known, and all that is beyond as one."""
    begins, ends, _ = plan.b
    m, k = int(ends[-1]), plan.every_a.last
    first = np.append(begins[begins < known], known)
    last = np.append(first[1:] - 1, m)
    return first, last, log_sizes(k, last)


def _cut_in_a_row(b: Cells, begin: int, end: int, pieces: int, bottom: Side) -> Cells:
    """Planned cells of b, a range of them in so many pieces or fewer, where there would be too many."""
    count = min(pieces, max(2, MOST // (end - begin)))
    first, number = b.first[begin:end, None], np.arange(count)
    width = b.last[begin:end, None] - first + 1
    # Without passing 2^63.
    starts = (first + width // count * number + width % count * number // count).ravel()
    # A cell of fewer indices than pieces begins where the one before it does, and is none.
    starts = np.concatenate([b.first[:begin], starts[:-1][starts[1:] > starts[:-1]], starts[-1:], b.first[end:]])
    return Cells.in_a_row(bottom, starts, np.append(starts[1:] - 1, bottom.last))


def tighten(found: Enclosure, top: Side, bottom: Side) -> Enclosure:
    """The same with bounds that are little above the classes, whatever their masses."""
    if _are_easy(found.log_masses):
        return found
    found, keeps_a = found.drop_empty(), is_flat(top)
    for _ in range(_ROUNDS):
        found, is_fine = _refine(found, top, bottom, keeps_a)
        if is_fine:
            break
    return found


def _are_easy(log_masses: Floats) -> bool:
    """Whether all bounds are little above the mass of the top-k alone, which is 1."""
    # One that is above that as a logarithm is above it as it is, and may be beyond all floats.
    if log_masses.item(log_masses.argmax()) > EASY:
        return False
    return bool((np.add.reduce(np.exp(np.maximum(log_masses, -80.0)), axis=-1) <= EASY).all())


_ROUNDS = 64
"""How often cells are cut at most: each time they are several times smaller."""


def _refine(found: Enclosure, top: Side, bottom: Side, keeps_a: bool = False) -> tuple[Enclosure, bool]:
    """The same, cut where most is wasted, and whether little is by then; cells of a may have to be kept."""
    a, b, levels = found.a, found.b, found.levels
    upper, at_last = found.log_masses, levels.place(b.last)
    level, way = at_last.level, at_last.way
    rise = upper - (b.log_mass + levels.bound(levels.place(b.first)))
    sag = 4.0 * way * (1.0 - way) * levels.sags[level]
    total = max(0.0, float(log_sum_exp((upper - rise - sag)[None])[0]))
    share = np.exp(np.minimum(upper - total, 600.0))
    if (hidden := _find_hidden(b, bottom)) is not None:
        if share[hidden] <= _NEGLIGIBLE:
            share[hidden] = 0.0
        else:
            bottom.sort_all()
    is_narrow = keeps_a or bool((a.last == a.first).all())
    if is_narrow and float(share.sum()) <= 1.0 + 2.0 * WASTE:
        return found, True
    wide = choose_wasteful(share * -np.expm1(-rise), WASTE)
    far = _add_up(level, share * -np.expm1(-sag), len(levels.sags))
    far = np.where(choose_wasteful(far, WASTE), np.ceil(np.sqrt(levels.sags / 0.15)).clip(2, 8), 1.0)
    pieces = None if is_narrow else _pieces_of_a(a, levels, _add_up(level, share, len(levels.sags)))
    is_fine = pieces is None
    if pieces is not None:
        a = a.cut(top, pieces)
        levels = Levels.at(levels.b, a)
    if (far > 1.0).any():
        levels, is_fine = _add_levels(a, levels, far), False
    if wide.any():
        parts = np.ceil(rise / RISE)
        is_fine &= float(parts[wide].max()) <= PIECES
        b = b.cut(bottom, np.where(wide, parts.clip(2, PIECES), 1).astype(np.int64))
    return Enclosure.of(a, b, levels), is_fine


def _find_hidden(b: Cells, bottom: Side) -> int | None:
    """Which cell goes on beyond the last index that is known, if one does."""
    if bottom.known_last == bottom.last:
        return None
    beyond = np.flatnonzero(b.last > bottom.known_last)
    return int(beyond[0]) if len(beyond) else None


_NEGLIGIBLE = 1e-4
"""What is beyond the known scores may stay in one cell where it has at most this share of all."""


def _pieces_of_a(a: Cells, levels: Levels, in_block: Floats) -> Ranks | None:
    """Into how many pieces to cut cells of a, some of which are wide, or None where they waste little."""
    wide = np.flatnonzero(a.last > a.first)
    near = np.flatnonzero(in_block > 2.0**-20 * in_block.sum())
    b = levels.b[near + 1, None]
    sizes = log_sizes(a.last[wide], b)
    row, rises = a.log_mass[wide] + sizes, sizes - log_sizes(a.first[wide], b)
    masses, wasted = np.exp(row - levels.log_r[near + 1, None]), -np.expm1(-np.maximum(rises, 0.0))
    # Beside what cells weigh at least: the bound of a wide one may be far above all others, which count all the same.
    at_least = np.maximum(1.0 - (masses * wasted).sum(axis=1), (masses * (1.0 - wasted)).sum(axis=1)) + 1e-200
    excess = np.zeros(len(a.last))
    excess[wide] = (in_block[near] / (in_block[near].sum() * at_least)) @ (masses * wasted)
    chosen = choose_wasteful(excess, WASTE)
    if not chosen.any():
        return None
    pieces = np.ones(len(a.last), np.int64)
    pieces[wide] = np.ceil(rises.max(axis=0) / RISE).clip(2, PIECES)
    return np.where(chosen, pieces, 1)


def _add_levels(a: Cells, levels: Levels, pieces: Floats) -> Levels:
    """More levels, so many times as close where they are."""
    whole: Ranks = np.minimum(pieces, np.diff(levels.b)).astype(np.int64)
    number, count = count_up(whole), np.repeat(whole, whole)
    low, width = np.repeat(levels.b[:-1], whole), np.repeat(levels.width, whole)
    between = low + ((low + 1.0) * np.expm1(width * number / count)).astype(np.int64)
    # None is too close to the level before it, or the same would be asked for again.
    between = np.maximum(between, low + number)
    new = sorted_distinct(between)
    new = new[levels.b[levels.b.searchsorted(new)] != new]
    b, log_r = np.append(levels.b, new), np.append(levels.log_r, Levels.at(new, a).log_r)
    order = np.argsort(b)
    return Levels(b[order], log_r[order])


def _add_up(block: Ranks, share: Floats, count: int) -> Floats:
    """The shares in each block."""
    return np.bincount(block, share, count).astype(np.float64)
