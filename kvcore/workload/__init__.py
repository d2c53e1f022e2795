"""Real traffic instead of one length: how full the pool is, and how often too full."""
