"""What `penstock.torch` consists of. Its modules load on first use, since some need PyTorch."""
