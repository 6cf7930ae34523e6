"""From a definition in Python to a call on the engine."""
