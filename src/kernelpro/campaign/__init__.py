"""Many problems over many workers: each a run of its own, all sharing one executor fairly."""
