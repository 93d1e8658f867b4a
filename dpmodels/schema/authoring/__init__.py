"""What public documentation says of the columns of a table, in seven forms, and what it makes of a schema's draft."""
