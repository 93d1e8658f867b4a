"""What the tests share: small data sets, and ways to start, kill, forge and compare."""
