"""Read a snapshot of a source whole, as tests compare it."""

import numpy as np

import discreet


def select_items(source, choose, scored=True):
    """What `choose` selects in each group of a source, by the number of the group and its tally, and the scores."""
    with source.snapshot() as snapshot:
        picks, scores = [], []
        for group, tally in enumerate(snapshot.tallies()):
            selection = choose(group, tally)
            picks.append(snapshot.pick(selection))
            scores.append([tally.exact(rank) for rank in selection.draw_ranks().tolist()] if scored else [])
        return list(zip(snapshot.items(picks), scores, strict=True))


def find_items(source, key, keep):
    """The items that `keep` keeps in each group, by how many items count for how many users."""
    with source.snapshot(key) as snapshot:
        return snapshot.items([keep(users, items) for users, items in snapshot.runs()])


def scores_of(kwargs, domain, question):
    """The score of each item of the domain, by label; or what is said in place of them."""
    try:
        source = discreet.events(**{**kwargs, "user": "who", "item": "what", "domain": domain, **question})
    except discreet.Error as error:
        return str(error), None
    tally = source.tally()
    items = source.items(np.arange(source.d))
    found = {(type(item), item): tally.exact(rank) for rank, item in enumerate(items)}
    source.close()
    return found, source.sensitivity
