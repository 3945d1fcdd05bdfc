"""History buffers `d.history`: past controls and sensor readings, for delays and sampling."""
