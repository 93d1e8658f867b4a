"""Federations: parties that train one model together without pooling their records."""
