"""What is drawn and changes its form: surfaces of flexes and skins, rods, tendons."""
