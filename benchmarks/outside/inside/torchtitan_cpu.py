"""PyTorch's processor posing as an H100, for torchtitan, which is imported after this.

Nothing is compiled.
"""

from types import SimpleNamespace

import torch

torch._utils._get_available_device_type = lambda: "cpu"
torch.cpu.get_device_name = lambda *_: "NVIDIA H100 80GB HBM3"
torch.cpu.get_device_properties = lambda *_: SimpleNamespace(total_memory=80 * 2**30)
for absent in ("reset_peak_memory_stats", "empty_cache", "memory_stats"):
    setattr(torch.cpu, absent, lambda *_: {})
torch.compile = lambda function, **_: function
