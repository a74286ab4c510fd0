"""The adapters that `arecall` ships, one package a backend; each is found by entry point like anyone else's."""
