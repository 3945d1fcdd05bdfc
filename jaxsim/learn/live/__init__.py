"""A training in the browser while it runs."""
