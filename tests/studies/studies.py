"""Studies whose points take milliseconds."""

TINY = """
schema = 1
name = "Tiny"
accelerator = "h100-80gb"

[fabric]
kind = "hierarchical"
schema = 1
name = "node"

[[fabric.level]]
name = "node"
group_size = 8
bandwidth_GBps = 450.0
latency_us = 5.0

[workload]
model = "bert-large"
sequence_length_tokens = 512
global_batch_sequences = 64
precision = "bf16"

[search]
tp = [1]
pp = [1]
micro_batch_sequences = [1, 2]
"""

STUDY = """
schema = 1
name = "Tiny"
scenario = "tiny.toml"

[[axes]]
parameter = "batch"
range = { from = 16, to = 64, step = 16 }

[[axes]]
parameter = "zero"
values = [0, 1, 3]
"""


def written(folder, study=STUDY, **scenarios):
    """A study's file in a folder, beside the scenarios that it names."""
    for name, text in {"tiny": TINY, "cluster": CLUSTER, **scenarios}.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "study.toml").write_text(study)
    return folder / "study.toml"


CLUSTER = """
schema = 1
name = "Small cluster"
fabric = "h100-spine-leaf-64"
accelerator = "h100-80gb"

[workload]
model = "gpt3-1.3b"
sequence_length_tokens = 1024
global_batch_sequences = 128
precision = "bf16"

[search]
tp = [1, 8]
pp = [1, 2]
micro_batch_sequences = [1]
zero = [1]
interleave = [1]
"""
