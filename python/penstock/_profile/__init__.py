"""What a profile says: its table, its sentence and its trace. Loaded on first use."""
