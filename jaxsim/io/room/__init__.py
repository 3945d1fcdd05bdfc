"""How many contacts and near pairs of geoms a world has room for."""
