"""What extends the engine: rows for plugins and colliders, those of MuJoCo and those of users."""
