"""Where and when work runs: modes, contexts, devices, streams, threads, processes."""
