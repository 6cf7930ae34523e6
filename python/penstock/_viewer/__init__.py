"""The web page of `penstock view`. Loaded on first use."""
