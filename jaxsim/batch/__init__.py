"""Simulate many steps: a scan, a program for many worlds and devices, recorded motions."""
