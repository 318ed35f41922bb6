"""From PyTorch modules to operator graphs: the one place of the workload that imports torch.

Nothing imports this package when the app starts; the command ``nest-studio trace`` does when a
person's own module is to be traced; ``python -m benchmarks.traces`` writes the shipped traces.
"""
