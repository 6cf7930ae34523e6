"""`map` of whole batches, for tests of what happens to Python functions on workers."""

import functools

import penstock as ndd

call = functools.partial(ndd.map, batched=True)
