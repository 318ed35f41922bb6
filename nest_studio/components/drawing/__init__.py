"""The canvas on which people draw fabrics; ``canvas`` registers it, so only pages import that."""
