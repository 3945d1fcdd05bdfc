"""The process of a command: how signals end it, and how several of them share a run."""
