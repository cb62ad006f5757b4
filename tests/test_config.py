"""Settings: where they come from, which wins, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanner.config import load_config, setting_names
from lanner.model.errors import InvalidPropertyError


def written(directory: Path, text: str) -> Path:
    path = directory / "lanner.toml"
    path.write_text(text)
    return path


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, "[api]\nport = 1\nlisten = '127.0.0.2'\nlease = 5\n")
    environment = {"LANNER_API_PORT": "2", "LANNER_API_LISTEN": "127.0.0.3"}
    loaded = load_config(file=file, environment=environment, flags={"api.port": 3, "manager.data": None})
    assert (loaded.config.api.port, loaded.config.api.listen, loaded.config.api.lease) == (3, "127.0.0.3", 5)
    assert loaded.source_of("api.port") == "flag --api.port"
    assert loaded.source_of("api.listen") == "environment LANNER_API_LISTEN"
    assert loaded.source_of("api.lease") == f"file {file}"
    assert loaded.source_of("manager.data") == "default"


def test_every_setting_can_come_from_the_environment() -> None:
    for name in setting_names():
        section, _, key = name.partition(".")
        value = getattr(getattr(load_config(environment={}).config, section), key)
        text = ",".join(map(str, value)) if isinstance(value, tuple | dict) else str(value)
        variable = f"LANNER_{name.replace('.', '_').upper()}"
        loaded = load_config(environment={variable: text.lower() if isinstance(value, bool) else text})
        assert getattr(getattr(loaded.config, section), key) == value, name
    names = load_config(environment={"LANNER_NETWORK_NAMES": "paris=10.0.0.1,rome=::1"}).config.network.names
    assert names == {"paris": "10.0.0.1", "rome": "::1"}
    with pytest.raises(InvalidPropertyError, match="name=value"):
        load_config(environment={"LANNER_NETWORK_NAMES": "paris"})
    assert load_config(environment={"LANNER_MANAGER_ALIASES": "a,b"}).config.manager.aliases == ("a", "b")


def test_the_file_of_the_current_directory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(environment={}).config.api.port == 8081
    written(tmp_path, "[api]\nport = 9999\n")
    assert load_config(environment={}).config.api.port == 9999


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[api]\nprt = 1", "did you mean api.port"),
        ("[api]\nport = 'x'", "api.port = 'x'"),
        ("[api]\nport = 70000", "65535"),
        ("[api]\nlease = 0", "api.lease"),
        ("[log]\nformat = 'xml'", "log.format"),
        ("port = 1", "outside of a section"),
        ("[api", "not TOML"),
        ("[manager]\nquota = -1", "quota"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InvalidPropertyError, match=said.replace("'", ".")):
        load_config(file=file, environment={})


def test_a_file_that_is_not_there_is_an_error_if_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidPropertyError, match="cannot read"):
        load_config(file=tmp_path / "none.toml", environment={})


def test_every_setting_is_documented() -> None:
    text = (Path(__file__).parent.parent / "docs" / "operations.md").read_text()
    for name in setting_names():
        assert f"`{name}`" in text, name
