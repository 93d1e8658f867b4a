"""What a run of each kind is to be, made of its configuration and other public inputs: a module a kind."""
