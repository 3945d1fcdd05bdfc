"""Extension points of the engine: plugins and colliders, those of MuJoCo and those of users."""
