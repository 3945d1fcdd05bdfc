"""What joins bodies: tendons, equalities, contact pairs; and the sensors."""
