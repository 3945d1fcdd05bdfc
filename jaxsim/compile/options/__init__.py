"""Compile the parts that concern the whole model: options, sizes, keyframes, custom data,
plugins."""
