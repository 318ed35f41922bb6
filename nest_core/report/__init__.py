"""What people read of results: values such as `tables.Table`, and one renderer per medium."""
