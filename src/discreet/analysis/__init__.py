"""Utility of a release, computed from the scores: NOT private, for public or made-up data."""

from discreet.analysis.joint_odds import JointOverSets

__all__ = ["JointOverSets"]
