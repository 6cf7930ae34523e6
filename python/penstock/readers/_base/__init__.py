"""What all readers share: epochs, shards, order, positions and states."""
