"""Studies whose points take milliseconds."""

from pathlib import Path

TINY = (Path(__file__).parents[1] / "data" / "studies" / "tiny.toml").read_text()

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
