"""What flows: tensors and batches, their element types, arithmetic, indexing and conversions."""
