"""Integrations of discreet with other libraries, one module each, imported only on request."""
