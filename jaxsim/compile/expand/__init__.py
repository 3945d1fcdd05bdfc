"""Expand abbreviated elements: attachments, replicates, classes; fuse static bodies."""
