"""Sentences for what is wrong with the keys of a contract's file."""

PHRASES = {  # pydantic's error types, in the words of someone who writes YAML
    "missing": "is missing",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "list_type": "must be one text, and no list",
    "string_type": "must be text; put it in quotes",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a mapping of `key: value` lines"),
    "tuple_type": "must be a list such as [a, b]",
    "too_short": "must list at least one value",
    "date_type": "must be a date such as 2020-01-31",
    "string_pattern_mismatch": "may hold only the characters a-z, 0-9, _ and -",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "greater_than": "must be more than {gt}",
    "union_tag_not_found": "has no type; write one of {kinds}",
}
