"""Which groups a user counts in, decided by the user's own rows and nothing else, in the query that scores them.

The rows are those kept by the caller's condition that have a user and a listed group, whatever their item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.sources.events.connect import Opened
from discreet.sources.events.dialect import Dialect
from discreet.sources.events.group_keys import GroupKeys, open_group_keys
from discreet.sources.events.user_hash import check_hash, hash_with_user
from discreet.sources.groups import MANY, ONE, check_each_user


@dataclass(frozen=True, eq=False, repr=False)
class GroupSplit:
    """The groups, and in how many of them a user counts.

    Attributes
    ----------
    groups
        The public list.
    each_user
        "one" where a user counts in the group with most rows of theirs, of several the first in the list.
    groups_per_user
        With "many", in how many groups a user counts at most: those with the least hashes of user and group.
    dialect
        That of the engine.
    """

    groups: GroupKeys
    each_user: str
    groups_per_user: int
    dialect: Dialect

    @property
    def is_bounded(self) -> bool:
        """Whether a user can be in more groups than count."""
        return self.groups_per_user < len(self.groups.keys)

    def keep_own_groups(self, scored: Any, rows: Any) -> Any:
        """What was made of the rows, less what is of groups in which its user does not count.

        Both have the columns `who` and `grp`; the rows decide.
        """
        if self.each_user != ONE and not self.is_bounded:
            return scored
        find = self._find_main_groups if self.each_user == ONE else self._keep_few_groups
        own = find(rows.alias("discreet_group_rows")).alias("discreet_groups")
        joined = scored.inner_join(own, [scored.who == own.who, scored.grp == own.grp])
        return joined.select(*(scored[name] for name in scored.columns))

    def _find_main_groups(self, rows: Any) -> Any:
        """For each user the group with most rows, the first in the list where there are several."""
        bits = len(self.groups.keys).bit_length()
        last, most = 2**bits - 1, 2 ** (62 - bits)
        counted = rows.group_by("who", "grp").agg(number=rows.count())
        # The greatest of numbers with the rows in the upper bits, the place from the end of the list in the lower ones.
        place = counted.number.cast("int64").clip(upper=most) * 2**bits + (last - counted.grp)
        ranked = counted.select(who=counted.who, place=place)
        main = ranked.group_by("who").agg(place=ranked.place.max())
        return main.select(who=main.who, grp=last - (main.place & last))

    def _keep_few_groups(self, rows: Any) -> Any:
        """At most so many groups of each user, others for another user, though the groups of both be the same."""
        import ibis

        pairs = rows.select(who=rows.who, grp=rows.grp).distinct()
        hashed = pairs.mutate(hash=hash_with_user(self.dialect, pairs.who, pairs.grp.cast("string")))
        position = ibis.row_number().over(ibis.window(group_by="who", order_by=[hashed.hash, hashed.grp]))
        ranked = hashed.mutate(position=position)
        return ranked.filter(ranked.position < self.groups_per_user).select("who", "grp")


def open_group_split(by: Any, groups: Any, opened: Opened, each_user: Any, max_groups_per_user: Any) -> GroupSplit:
    """The groups that the arguments of `events` describe, and in how many of them a user counts."""
    keys = open_group_keys(by, groups, opened)
    most = check_each_user(each_user, max_groups_per_user, len(keys.keys))
    split = GroupSplit(keys, each_user, most, opened.dialect)
    if each_user == MANY and split.is_bounded:
        check_hash(opened, "max_groups_per_user")
    return split
