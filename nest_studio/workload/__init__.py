"""Parts of the page Workload."""
