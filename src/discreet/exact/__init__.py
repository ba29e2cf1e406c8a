"""Exact sampling from random bits: uniforms, balls, envelopes and races, without reference to scores or epsilon."""
