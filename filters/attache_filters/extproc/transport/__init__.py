"""How ext_proc streams reach a segment: what every transport shares, and one module or folder for each."""
