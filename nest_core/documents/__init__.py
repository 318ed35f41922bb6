"""Files people write and what may be set in them: schema, presets, units, errors, quoting."""
