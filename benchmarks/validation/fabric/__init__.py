"""Published experiments in which one workload, or one collective, ran on two networks."""
