"""Tensors and batches: element types, arithmetic, indexing and conversions."""
