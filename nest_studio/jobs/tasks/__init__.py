"""What worker processes do for pages: plain requests in, values out."""
