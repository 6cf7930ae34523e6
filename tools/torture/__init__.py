"""Attacks on penstock: `make torture` runs all of them for an hour, `make torture-ci` some of them.

An attack looks for harm: a process that dies by a signal or aborts, hangs, takes memory without
bound, raises InternalError, shows memory that was not written, loses samples, or leaks. What it
finds is kept in a folder, with the command that does it again.
"""
