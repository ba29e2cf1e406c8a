"""What a release of any kind is asked for: of one list of items, of one for each group, or of items to be found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.request import Request, make_request
from discreet.sources.base import AnySource, Source
from discreet.sources.groups import GroupedSource

if TYPE_CHECKING:
    from discreet.discovery_request import DiscoveryRequest
    from discreet.grouped_request import GroupedRequest

AnyRequest: TypeAlias = "Request | GroupedRequest | DiscoveryRequest"


def make_any_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> AnyRequest:
    """The request that the arguments of `top_k` describe, by group where the scores are, or for items to be found."""
    if isinstance(scores, Source) or not isinstance(scores, AnySource):
        return make_request(scores, k, epsilon, **terms)
    if isinstance(scores, GroupedSource):
        from discreet.grouped_request import make_grouped_request

        return make_grouped_request(scores, k, epsilon, **terms)
    from discreet.discovery_request import make_discovery_request
    from discreet.sources.unlisted import UnlistedSource

    assert isinstance(scores, UnlistedSource), "there is no other kind of source"
    return make_discovery_request(scores, k, epsilon, **terms)
