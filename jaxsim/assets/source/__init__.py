"""Sources of files: memory, URIs, file systems, archives; and limits on their sizes."""
