"""Charts that are published again and again: a file of them, what they cost, their releases and their site."""
