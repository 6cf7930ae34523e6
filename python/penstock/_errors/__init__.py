"""What users read when something goes wrong: messages, tracebacks, bad samples."""
