"""Drawing of worlds: shapes and surfaces, poses, contacts, and the scene that combines them."""
