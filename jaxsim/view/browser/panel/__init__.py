"""The panel beside the drawing: what is seen, what was picked, tables, curves."""
