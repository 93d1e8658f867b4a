"""Documents that say what a table is, as other tools write them: contracts, tests, definitions of databases."""
