"""The reference distribution of a mechanism of the library."""

import discreet
import reference


def definition(mechanism, scores, k, epsilon):
    s = reference.scale(epsilon)
    match mechanism:
        case discreet.Canonical():
            return reference.canonical(scores, k, s, mechanism.gamma, mechanism.noise)
        case discreet.Joint():
            return reference.joint(scores, k, s)
        case discreet.OneShot():
            return reference.oneshot(scores, k, s, mechanism.noise)
        case discreet.Peeling():
            return reference.peeling(scores, k, s, mechanism.noise)
