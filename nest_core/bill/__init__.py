"""What a fabric is built of and what that costs: parts, cables, prices, power."""
