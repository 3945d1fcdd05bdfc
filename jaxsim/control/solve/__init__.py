"""Small numerical problems: a Riccati equation, least squares, the backward pass of iLQR."""
