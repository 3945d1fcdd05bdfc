"""The page of settings is current; every example of a configuration can be read."""

from pathlib import Path

import pytest
from tools.settings import FORMS, reference

from jaxsim.io.config import config_text, read_config

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"learn": "train", "optimize": "optimize", "identify": "identify"}
FILES = [path for folder in FOLDERS for path in sorted((ROOT / "configs" / folder).glob("*.toml"))]


def test_the_page_is_current():
    assert (ROOT / "docs/reference/settings.md").read_text() == reference(), (
        "write it again: python docs/tools/reference.py settings"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_are_read_and_written_again(path, tmp_path):
    form = FORMS[FOLDERS[path.parent.name]]
    settings, _ = read_config(path, form)
    again = tmp_path / "again.toml"
    again.write_text(config_text(settings))
    assert read_config(again, form)[0] == settings
