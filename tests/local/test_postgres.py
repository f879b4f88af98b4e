"""PostgreSQL out of the wheel: it starts, survives a kill, and refuses with a sentence."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from evalboard.local import postgres
from evalboard.local.report import CannotStart
from tests.nightly import nightly
from tests.processes import family_of, kill_all, main_process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.Server]:
    folder = tmp_path_factory.mktemp("pg")
    server = postgres.Server(folder / "postgres", log=folder / "postgres.log")
    server.start()
    yield server
    server.stop()


def test_a_database_is_made_once_and_reached_through_its_url(server):
    url = server.create_database("once")
    assert server.create_database("once") == url
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("once",)


def test_it_listens_on_no_network_address(server):
    with psycopg.connect(server.url("postgres")) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("",)


def test_its_folder_is_closed_to_others(server):
    assert server.folder.stat().st_mode & 0o077 == 0


def test_committed_rows_and_no_others_survive_a_kill_of_everything(server):
    connection = psycopg.connect(server.create_database("killed"))
    connection.execute("CREATE TABLE kept (n int)")
    connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
    connection.commit()
    connection.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
    kill_all(family_of(main_process(server)))
    connection.close()
    server.start()
    with psycopg.connect(server.url("killed")) as again:
        assert again.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_it_starts_although_processes_of_the_killed_server_still_end(server):
    idle = psycopg.connect(server.url("postgres"))
    os.kill(main_process(server), signal.SIGKILL)
    server.start()
    idle.close()
    with psycopg.connect(server.url("postgres")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.nightly
@pytest.mark.parametrize("left", ["postmaster.pid", *nightly([f"{postgres.SOCKET_NAME}.lock"])])
def test_a_leftover_that_names_a_living_stranger_is_no_obstacle(tmp_path, left):
    server = postgres.Server(tmp_path / "postgres", log=tmp_path / "log")
    server.start()
    lines = (server.folder / left).read_text().split("\n")
    server.stop()
    (server.folder / left).write_text("\n".join([str(os.getppid()), *lines[1:]]))
    server.start()
    server.stop()


def test_a_cluster_whose_making_was_interrupted_is_made_afresh(tmp_path):
    (tmp_path / "postgres.new").mkdir()
    (tmp_path / "postgres.new" / "PG_VERSION").write_text("18\n")
    server = postgres.Server(tmp_path / "postgres", log=tmp_path / "log")
    server.start()
    server.stop()
    assert not (tmp_path / "postgres.new").exists()


def test_a_cluster_of_another_version_is_refused_with_both_versions(tmp_path):
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(CannotStart, match="made by PostgreSQL 16 and this is 18"):
        postgres.Server(tmp_path / "postgres", log=tmp_path / "log").start()


def test_a_path_too_long_for_a_socket_is_refused_by_its_excess():
    room = postgres.SOCKET_PATH_BYTES - len("/" + postgres.SOCKET_NAME)
    postgres.check_socket_path(Path("/" + "x" * (room - 1)))
    with pytest.raises(CannotStart, match="1 bytes too long"):
        postgres.check_socket_path(Path("/" + "x" * room))


def test_a_database_that_does_not_answer_is_refused_with_its_reason():
    with pytest.raises(CannotStart, match=r"DATABASE_URL .*Connection refused\)"):
        postgres.check_answers("postgres://postgres@127.0.0.1:9/nowhere")
