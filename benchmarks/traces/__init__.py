"""What the traces of ``presets/traces`` are traced from: PyTorch modules of every family's layers.

``python -m benchmarks.traces`` writes them anew. A family is the table ``[layers]`` of its file in
``presets/families``; the modules here are the parts that such tables name. None of this ships.
"""
