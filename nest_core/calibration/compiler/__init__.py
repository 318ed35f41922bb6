"""A stage of a plan as XLA compiles it for TPUs that are not there, beside what we predict."""
