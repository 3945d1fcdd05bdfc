"""What extends the engine: the plugins that are known."""
