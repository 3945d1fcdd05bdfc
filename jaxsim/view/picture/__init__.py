"""Ray-traced images of worlds on the device: pixels, surfaces, textures, lighting."""
