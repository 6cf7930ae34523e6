"""Pictures of data: in notebooks, in files and on the command line. Loaded on first use."""
