"""Browser viewer on top of viser: live simulation, replay of recordings, and standalone pages."""
