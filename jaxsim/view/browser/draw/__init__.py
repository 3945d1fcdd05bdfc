"""What is drawn of worlds: shapes and surfaces, poses, contacts, and the scene of them."""
