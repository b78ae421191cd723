"""Readings of a server and of its machine, as plain data. Nothing here judges them."""
