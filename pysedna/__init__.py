"""pysedna: a controller runtime for Kubernetes in Python, and the Sedna Global Manager's controllers built on it.

Look into the subpackages: `controller` (what a controller is written with), `jobs` (the Sedna kinds), `api` (their
types and CRDs), `localcluster` (an embedded API server), `testing`, `demo` and `cli`. Nothing is imported here, so that
each costs only itself.
"""
