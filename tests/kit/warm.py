"""What every command imports and makes once in its process, before processes are forked that each run one command.

The server of forks imports this module, and nothing else does. The collector of garbage would otherwise walk through
what all these modules hold in each fork, which copies that memory, and each fork would compile every template anew.
"""

import gc
import importlib

import typer

from tests.kit.children import IMPORTED

gc.disable()
for name in IMPORTED:
    importlib.import_module(name)

from dpmodels.pages import page  # noqa: E402  while the collector rests
from flows.command_line.app import app  # noqa: E402

for name in page._environment().list_templates():
    page._environment().get_template(name)
typer.main.get_command(app)
gc.freeze()
gc.enable()
