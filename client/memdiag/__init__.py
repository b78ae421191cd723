"""memdiag: a MySQL server's memory on one page, on a live screen, over time, and compared."""

__version__ = "1.0.0"
