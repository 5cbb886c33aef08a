"""One file per library: a function per kind of work, returning what is to be timed.

`benchmarks/worker.py` loads these files by path inside the library's own environment, so each
imports its library, `benchmarks.tasks`, and nothing else of this project.
"""
