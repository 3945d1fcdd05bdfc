"""Parts of the random models that `odd_models.py` draws and checks."""
