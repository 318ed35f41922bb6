"""Foreign files in and out: fabrics of other programs, and plans for frameworks and schedulers."""
