"""Errors: messages at calls, faults from the engine, tracebacks, bad samples."""
