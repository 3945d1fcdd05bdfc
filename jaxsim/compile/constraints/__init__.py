"""Compile the elements that couple bodies: tendons, equalities, contact pairs; and the sensors."""
