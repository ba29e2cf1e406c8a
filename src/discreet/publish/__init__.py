"""Publish charts again and again: read a charts file, price its releases, draw them and write their site."""
