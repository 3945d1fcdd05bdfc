"""In and out: loading, assembling, saving; models and states of MuJoCo."""
