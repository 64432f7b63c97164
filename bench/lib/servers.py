"""Databases: PostgreSQL, MariaDB, and RocksDB's db_bench."""

import contextlib
import glob
import os
import pathlib
import pwd
import shutil
import signal

from .programs import Failed, call, running, until


def find(*patterns):
    """The newest program that one of these patterns names."""
    for pattern in patterns:
        if programs := sorted(glob.glob(pattern)) or [path for path in [shutil.which(pattern)] if path]:
            return programs[-1]
    raise Failed(f"{patterns[0]} is missing; install its package")


class Postgres:
    """A server over a folder, made where it is empty: `with Postgres(…) as server`. Its socket is in `/tmp`."""

    def __init__(self, data, **settings):
        self.data, self.port = pathlib.Path(data), str(20000 + os.getpid() % 40000)
        self.programs = pathlib.Path(find("/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "postgres")).resolve().parent
        users = {user.pw_name for user in pwd.getpwall()}
        self.user = "postgres" if "postgres" in users else "nobody"
        settings = {"listen_addresses": "", "unix_socket_directories": "/tmp", "port": self.port, **settings}
        self.words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]

    def command(self, program, *words):
        return ["setpriv", f"--reuid={self.user}", f"--regid={pwd.getpwnam(self.user).pw_gid}", "--clear-groups", "env",
                "PGHOST=/tmp", f"PGPORT={self.port}", "PGDATABASE=postgres", f"PGUSER={self.user}", str(self.programs / program), *map(str, words)]

    def call(self, program, *words):
        # In a folder that it may enter.
        return call(*self.command(program, *words), cwd="/")

    def psql(self, *queries):
        """The command that runs these queries."""
        return self.command("psql", "-Atq", *(word for query in queries for word in ("-c", query)))

    def query(self, *queries):
        return call(*self.psql(*queries), cwd="/").strip()

    def start(self, init=()):
        self.data.parent.chmod(0o755)
        if not self.data.exists():
            self.data.mkdir(mode=0o700)
            shutil.chown(self.data, self.user)
            self.call("initdb", "-D", self.data, "-A", "trust", "--no-sync", "-U", self.user, *init)
        self.stack = contextlib.ExitStack()
        log = f"/tmp/trimbench-postgres-{self.port}.log"
        self.stack.callback(pathlib.Path(log).unlink, missing_ok=True)
        # SIGINT: it disconnects its clients and ends.
        self.process = server = self.stack.enter_context(running(*self.command("postgres", "-D", self.data, *self.words), cwd="/", stop=signal.SIGINT, log=log))
        try:
            until({"cwd": "/"}, *self.psql("SELECT 1"), server=server)
        except Failed:
            lines = pathlib.Path(log).read_text().splitlines()
            said = [line for line in lines if "FATAL" in line or "PANIC" in line] or lines or ["no message"]
            self.stop()
            raise Failed(f"PostgreSQL did not start: {said[-1]}") from None

    def stop(self):
        self.stack.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class Group:
    """A control group of version 2 that holds a server, and what it starts from now on: `with Group(…) as group`."""

    def __init__(self, server):
        mounts = (line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines())
        self.root = next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
        if not self.root:
            raise Failed("there are no control groups of version 2")
        self.path, self.server = self.root / f"trimbench-bench-{os.getpid()}", server

    def waited_s(self):
        """How long one of its tasks at least has waited for I/O."""
        some = (self.path / "io.pressure").read_text().splitlines()[0]
        return int(some.rpartition("=")[2]) / 1e6

    def __enter__(self):
        self.path.mkdir()
        children = call("pgrep", "-P", self.server.pid, good=(0, 1)).split()
        for pid in [self.server.pid, *children]:
            (self.path / "cgroup.procs").write_text(f"{pid}\n")
        return self

    def __exit__(self, *_):
        for pid in (self.path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (self.root / "cgroup.procs").write_text(f"{pid}\n")
        self.path.rmdir()


@contextlib.contextmanager
def mariadb(data, *words):
    """A server with these options over a new folder; the command that runs a query, which comes last."""
    socket = f"/tmp/trimbench-{os.getpid()}.sock"
    client = [find("mariadb", "mysql"), f"--socket={socket}", "--user=root", "-e"]
    call(find("mariadb-install-db", "mysql_install_db"), f"--datadir={data}", "--user=root", "--auth-root-authentication-method=normal")
    with running(find("mariadbd", "/usr/sbin/mariadbd", "mysqld"), f"--datadir={data}", f"--socket={socket}", "--skip-networking", "--user=root",
                 "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", *words) as server:
        until({}, *client, "SELECT 1", server=server)
        yield client


def db_bench(path, keys, *words):
    """The command for a database of so many keys of 4 KiB."""
    return [find("db_bench"), f"--num={keys}", f"--db={path}", "--value_size=4096", "--compression_type=none", *words]
