"""The expectations that a contract asks for, and how tables are held to them."""
