"""The distribution that the definition gives a mechanism of the library, as probabilities."""

import math

from discreet.evidence import definition as by_definition
from discreet.mechanisms.registry import to_dict


def probabilities(logs):
    return {outcome: math.exp(log) for outcome, log in logs.items()}


def definition(mechanism, scores, k, epsilon):
    return probabilities(by_definition.law(to_dict(mechanism), scores, k, epsilon))
