"""Numbers and bits: exact uniform draws, balls, envelopes and races. Nothing here has heard of scores or epsilon."""
