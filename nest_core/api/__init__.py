"""The public API, a module per verb; `nest_core` hands its names out (`nest_core.__all__`)."""
