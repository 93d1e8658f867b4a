"""How good is the synthetic table: published summaries of releases, and scores against real rows that stay inside."""
