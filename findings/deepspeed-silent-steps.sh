#!/usr/bin/env bash
# DeepSpeed 0.19.8: "steps_per_print" prints nothing, unless "log_level" is lowered too.
#
# The lines that people and tools read (SamplesPerSec, the configuration of the engine, DeepSpeed's
# version) are of level INFO, and the logger of the package begins at WARNING. The key "log_level"
# of ds_config.json, whose default is None, lowers it; --log_level of the launcher does so in the
# launcher's own process alone.
#
# Guessed before it was run: a line with SamplesPerSec after every step that steps_per_print names,
# as in all releases whose lines were read before.
# Who wants a log to calibrate with puts "log_level": "info" beside "steps_per_print".
#
# DeepSpeed's logger and timer are run as they are; PyTorch, which they import, is a stand-in.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet --disable-pip-version-check numpy setuptools
"$folder/env/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
    --dest "$folder" deepspeed==0.19.8
tar --extract --gzip --file "$folder"/deepspeed-0.19.8.tar.gz --directory "$folder"
cd "$folder/deepspeed-0.19.8/deepspeed"
"$folder/env/bin/python" - <<'PYTHON'
import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace


def put(name, **values):
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(values)
    return module


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


accelerator = SimpleNamespace(
    synchronize=lambda: None,
    memory_allocated=lambda: 0,
    max_memory_allocated=lambda: 0,
    Event=object,
)
put("torch")
put("deepspeed", comm=SimpleNamespace(is_initialized=lambda: False))
put("deepspeed.accelerator", get_accelerator=lambda: accelerator)
utils = put("deepspeed.utils")
put("deepspeed.utils.torch", required_torch_version=lambda **_: False)
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    logging = load("deepspeed.utils.logging", "utils/logging.py")
utils.logger = logging.logger
timer_module = load("deepspeed.utils.timer", "utils/timer.py")


def steps():
    """Print of ten steps, a line for every one."""
    printed.seek(0)
    printed.truncate()
    config = SimpleNamespace(enabled=True, synchronized=True)
    timer = timer_module.ThroughputTimer(config, batch_size=8, steps_per_output=1)
    for _ in range(10):
        timer.start()
        timer.stop(global_step=True)
    return printed.getvalue().count("CurrSamplesPerSec=")


default = re.search(r"^LOG_LEVEL_DEFAULT = (\w+)", Path("runtime/constants.py").read_text(), re.M)[1]
silent = steps()
logging.set_log_level_from_string("info")
loud = steps()
print("log_level by default", default, "lines of ten steps", silent, "with info", loud)
assert (default, silent, loud) == ("None", 0, 8), (default, silent, loud)
print("as described")
PYTHON
