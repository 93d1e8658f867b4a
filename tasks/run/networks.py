"""The operator's file of networks: which classes a configuration may choose among, by alias.

    ward-critic: wards.networks:ConvCritic

It is named by the worker's environment, and never by a configuration or a flow's parameters.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dpmodels.errors import InvalidArgument
from dpmodels.files import read_at_most
from dpmodels.limits import LARGEST_YAML
from dpmodels.plain_yaml import YamlFault, read_yaml

VARIABLE = "NACRE_NETWORKS"
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def listed() -> Mapping[str, str]:
    """Return ``module:Class`` by alias; none where the environment names no file.

    Raises:
        InvalidArgument: the file cannot be read, or a line of it names no class.
    """
    if not (path := os.environ.get(VARIABLE)):
        return {}
    try:
        content = read_yaml(read_at_most(Path(path), LARGEST_YAML).decode())
    except (OSError, UnicodeDecodeError, YamlFault):
        raise InvalidArgument(VARIABLE, path, "be a readable file of YAML, alias: module:Class") from None
    if not isinstance(content, dict) or not all(_TARGET.fullmatch(str(target)) for target in content.values()):
        raise InvalidArgument(VARIABLE, path, "have lines `alias: module:Class` alone")
    return {str(alias): str(target) for alias, target in content.items()}
