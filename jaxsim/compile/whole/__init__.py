"""What is said of the model as a whole: options, sizes, key frames, custom data, plugins."""
