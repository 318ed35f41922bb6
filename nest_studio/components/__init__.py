"""Parts that several pages show: the drawing canvas, fabric pictures, keys, notices, tables."""
