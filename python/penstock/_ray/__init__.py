"""`penstock.ray`: the trainer decides which samples make a batch, workers of Ray make it."""
