"""The audit of a method, on made data: what can be measured of its promises, held to what it claims and is charged.

The modules that replace the noise (``tap``) are for this room alone: no other room of the product imports it.
"""
