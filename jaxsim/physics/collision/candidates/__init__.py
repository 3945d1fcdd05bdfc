"""Which pairs of geoms can meet, by which function, and how many are looked at."""
