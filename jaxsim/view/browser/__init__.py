"""A model in the browser: drawn by viser, moved by poses, played live or from a recording."""
