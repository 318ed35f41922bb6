"""What the pages share, and the command line."""
