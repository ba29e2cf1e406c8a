"""Make a release: check the request, draw, and write down what was drawn and what it promises."""
