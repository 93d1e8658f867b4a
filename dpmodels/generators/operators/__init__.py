"""Networks that an operator brings: what they are bound to, and what is tried before a charge."""
