"""Controls that set a scenario's keys: fields with bounds, folds, pins, and whole forms."""
