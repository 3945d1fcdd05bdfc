"""Small numerical problems: a box, a Riccati equation, least squares, the backward pass of iLQR."""
