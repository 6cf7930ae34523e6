"""What moves on: random generators, checkpoints, prefetching loops, external sources."""
