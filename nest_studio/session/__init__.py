"""State that outlives a run of a page: undo, own fabrics and models, the address, the store."""
