"""The rules. Their codes stay the same for ever; a rule that is dropped leaves a gap."""

RULES = {
    "PS001": 'device="mixed" belongs to pipeline mode; use "gpu"',
    "PS002": "batch[i] raises; use tensors[i] for a sample, or slice[i] inside each sample",
    "PS003": "select() chooses samples; slice[] indexes inside each sample",
    "PS004": "evaluate() is not needed in loops; reading a value waits for it",
    "PS005": "cpu() before torch() copies in vain; torch() converts from any device",
    "PS006": "a reader is made in a loop; it has state, make it once and call next_epoch()",
    "PS007": "classes of readers are written in PascalCase: readers.File",
    "PS008": "break leaves an epoch unfinished; the next one continues there",
    "PS009": "a random operator without batch_size gives one value for all samples",
    "PS010": "pipeline mode doesn't exist here; `penstock migrate` rewrites it",
    "PS011": "batch_size belongs to next_epoch(), not to the reader",
}
