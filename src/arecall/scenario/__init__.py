"""Scenarios: a world, its stages of change, and what must hold at each, replayed live or from the record.

Files follow the data: a file is read (`yaml_tree`, `loader`) into the types of `schema`; `state` is the world that it
describes, `oracle` says who may read what in it, `compiling` puts it into the terms that every adapter takes; `running`
replays it on a backend and records what was seen (`recording`); `judging` comes to verdicts from the record alone.
"""
