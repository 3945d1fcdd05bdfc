"""The control panel of a page: visibility, selection, tables, curves."""
