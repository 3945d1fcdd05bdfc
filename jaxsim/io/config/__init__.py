"""Configurations: TOML files parsed into dataclasses; every error gives the line."""

from jaxsim.io.config.memory import check_memory as check_memory
from jaxsim.io.config.read import SettingLocations as SettingLocations
from jaxsim.io.config.read import config_text as config_text
from jaxsim.io.config.read import parse_value as parse_value
from jaxsim.io.config.read import read_config as read_config
from jaxsim.io.config.read import setting as setting
from jaxsim.io.config.read import split_change as split_change
from jaxsim.io.config.read import toml_value as toml_value
