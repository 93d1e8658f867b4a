"""The systems, one a file; each is the same three verbs: plan, measure, fit."""
