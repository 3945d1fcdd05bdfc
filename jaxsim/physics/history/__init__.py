"""Controls and sensor readings of the past, `d.history`: for what is late, or sampled."""
