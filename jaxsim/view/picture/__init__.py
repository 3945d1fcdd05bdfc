"""Pictures of worlds by rays, on the device: pixels, surfaces, textures, light."""
