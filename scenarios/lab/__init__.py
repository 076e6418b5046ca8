"""The live lab: a small shop of real processes on loopback that can be broken in seven ways, watched and mended."""
