"""Where files come from: memory, URIs, file systems, archives; and what they may ask for."""
