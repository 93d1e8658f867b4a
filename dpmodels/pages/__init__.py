"""Pages of facts that were computed elsewhere: one file each, which fetches nothing."""
