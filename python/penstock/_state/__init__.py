"""Objects with state: random generators, checkpoints, prefetching loops, external sources."""
