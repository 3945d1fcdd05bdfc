"""What a model takes from files: meshes, images, height fields, and where the files are found."""
