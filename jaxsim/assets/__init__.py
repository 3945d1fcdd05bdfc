"""Read and generate assets: meshes, images, height fields; locate their files."""
