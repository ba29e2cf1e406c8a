"""How good a release will be, from the scores: NOT private, for public or made-up data."""

from discreet.analysis.joint_sets import JointOverSets

__all__ = ["JointOverSets"]
