"""Recorded motions in the file formats of other programs: Rerun, USD, MCAP and glTF."""
