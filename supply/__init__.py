"""What is installed with nacre, for those who must answer for it: pins with hashes, licenses, a bill of materials."""
