"""Teams on several hosts with PostgreSQL: commands over a network, spawns behind ssh, load of 50 hosts.

It needs PostgreSQL, and for the row of spawns the hosts of fixtures/hosts (root, sshd, iproute2,
iptables). The network is a relay of this script between phalanx and PostgreSQL, with half of a round
trip in each direction; for ssh it is fixtures/hosts/relay. Hosts of the rows of load are config roots
of this machine, each with its own name and broker; their launchers are subscriptions without programs.
"""

import atexit
import contextlib
import glob
import itertools
import json
import os
import queue
import selectors
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from common import BINARY, FAKE, ROOT, add_profile, cpu_ms, process_floor, size, timed, until

PROGRAM = os.path.realpath(BINARY)
STAGE = os.path.join(ROOT, "fixtures", "hosts", "stage")
ROUND_TRIP_MS = 20
ROUNDS = size(15, 2)
BATCHES = size(5, 1)
SPAWNED = size(16, 2)
HOSTS = size((5, 50), (2, 3))
MEMBERS_PER_HOST = size(10, 2)
SECONDS = size(10, 2)
TASKS = size(60_000, 10_000)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """A private PostgreSQL server with default settings; it syncs every commit."""

    def __init__(self, work):
        found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1:]), None)
        if not found:
            sys.exit("PostgreSQL is missing: apt-get install postgresql")
        self.bin = os.path.dirname(os.path.realpath(found))
        self.work = work
        self.data, self.port = os.path.join(work, "data"), free_port()
        os.mkdir(self.data)
        self.user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.user:
            shutil.chown(self.data, "postgres")
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres")
        options = f"-p {self.port} -k {self.data} -c listen_addresses=127.0.0.1"
        self.run("pg_ctl", "-D", self.data, "-o", options, "-l", os.path.join(self.data, "log"), "-w", "start")
        atexit.register(self.run, "pg_ctl", "-D", self.data, "-m", "immediate", "stop")

    def run(self, program, *args):
        words = [*self.user, os.path.join(self.bin, program), *args]
        done = subprocess.run(words, capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            sys.exit(f"{program}: {done.stderr}")
        return done.stdout

    def ask(self, sql):
        return self.run("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-Atc", sql).strip()

    def url(self, port=None):
        return f"postgres://postgres@127.0.0.1:{port or self.port}/postgres"

    def host(self, name, url=None):
        """A host of this machine that keeps its teams here."""
        host = Host(os.path.join(self.work, name), name, url or self.url())
        # Before the server is stopped. Members are left only by a run that was cut short.
        atexit.register(host.phalanx, "down", "--force", ok=False)
        return host


def relay(port, target, ms):
    """Connects a port with another one, each direction delayed; in a process of its own. Threads, since
    asyncio rounds each pause up to a whole millisecond."""

    def forward(source, sink):
        waiting = queue.SimpleQueue()

        def deliver():
            data = b"begin"
            while data:
                due, data = waiting.get()
                time.sleep(max(0.0, due - time.monotonic()))
                with contextlib.suppress(OSError):
                    sink.sendall(data) if data else sink.shutdown(socket.SHUT_WR)

        threading.Thread(target=deliver, daemon=True).start()
        data = b"begin"
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b""
            waiting.put((time.monotonic() + ms / 1000, data))

    def serve():
        server = socket.create_server(("127.0.0.1", port))
        while True:
            client, _ = server.accept()
            peer = socket.create_connection(("127.0.0.1", target))
            for stream in (client, peer):
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for ends in ((client, peer), (peer, client)):
                threading.Thread(target=forward, args=ends, daemon=True).start()

    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            serve()
        finally:
            os._exit(0)
    atexit.register(os.kill, pid, signal.SIGTERM)
    until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)


def round_trip(port):
    """Asks the server whether it speaks TLS; it answers with one byte."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return timed(lambda: (client.sendall(struct.pack(">II", 8, 80877103)), client.recv(1)))


class Host:
    """A host of this machine: a config root, a home directory and a name."""

    def __init__(self, folder, name, url):
        self.name, self.dir = name, folder
        self.root, self.work = os.path.join(self.dir, "config"), os.path.join(self.dir, "work")
        for sub in ("home", "tmux", "work"):
            os.makedirs(os.path.join(self.dir, sub), mode=0o700)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": os.path.join(self.dir, "home"), "LANG": "C.UTF-8",
            "TMUX_TMPDIR": os.path.join(self.dir, "tmux"), "TERM": "xterm-256color",
            "PHALANX_CONFIG_DIR": self.root, "PHALANX_STORE": url, "PHALANX_HOST": name, "PHALANX_TEAM": "bench",
        }

    def phalanx(self, *args, ok=True):
        done = subprocess.run([PROGRAM, "--json", *args], env=self.env, cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        if ok and done.returncode != 0:
            sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.startswith(("{", "[")) else done.stdout


class Broker:
    """A client of a host's broker (src/database/protocol.rs)."""

    def __init__(self, host):
        path = glob.glob(os.path.join(host.root, "phalanx", "store", "*.sock"))
        if not path:
            sys.exit(f"host {host.name} has no broker")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path[0])
        self.next, self.buffer, self.team = 0, b"", "bench"

    def send(self, request):
        self.next += 1
        body = json.dumps({"id": self.next, "request": request}).encode()
        self.socket.sendall(struct.pack(">I", len(body)) + body)

    def call(self, function, **arguments):
        self.send({"call": {"function": function, "arguments": {"actor": {}, "team": self.team, **arguments}}})

    def answer(self):
        """Returns the next answer, and skips notifications."""
        while True:
            while len(self.buffer) < 4 or len(self.buffer) < 4 + struct.unpack(">I", self.buffer[:4])[0]:
                data = self.socket.recv(1 << 20)
                if not data:
                    sys.exit("a broker has closed its connection")
                self.buffer += data
            length = struct.unpack(">I", self.buffer[:4])[0]
            message, self.buffer = json.loads(self.buffer[4 : 4 + length]), self.buffer[4 + length :]
            if "answer" in message:
                if "Err" in message["answer"]["result"]:
                    sys.exit(f"the store refuses: {message}")
                return message["answer"]["result"]["Ok"]

    def drain(self):
        """Reads and drops notifications, as an idle launcher does that they do not concern."""
        self.socket.settimeout(None)
        while True:
            try:
                if not self.socket.recv(1 << 20):
                    return
            except OSError:
                return


def row(what, figure, limit=""):
    print(f"  {what:<58} {figure:>18}   {limit}", flush=True)


def commands(cluster):
    """Each command over a network of one round trip, against the same without a delay."""
    port = free_port()
    relay(port, cluster.port, ROUND_TRIP_MS / 2)
    print(f"commands, network with a round trip of {ROUND_TRIP_MS} ms, median of {ROUNDS} (whole process)")
    row("floor: `phalanx --version`", f"{statistics.median(process_floor()):.1f} ms")
    asked = [statistics.median(round_trip(at) for _ in range(30)) for at in (cluster.port, port)]
    row("floor: a byte asked of the server: without delay / with", f"{asked[0]:.1f} / {asked[1]:.1f} ms")
    near, far, other = (cluster.host(name, cluster.url(at)) for name, at in (("near", None), ("far", port), ("other", port)))
    near.phalanx("team", "create", "bench")
    near.phalanx("spawn", "bob", "--backend", "pty")
    for n in range(4 * ROUNDS):
        near.phalanx("task", "create", f"task {n}")
    ids = iter(range(1, 4 * ROUNDS + 1))
    for what, call, limit in [
        ("send", lambda host: host.phalanx("send", "team-lead", "a message"), 5),
        ("task claim", lambda host: host.phalanx("task", "claim", str(next(ids))), 5),
        ("status", lambda host: host.phalanx("status"), None),
    ]:
        call(far), call(near)
        local, remote = ([timed(lambda: call(host)) for _ in range(ROUNDS)] for host in (near, far))
        local, remote = statistics.median(local), statistics.median(remote)
        said = f"limit {ROUND_TRIP_MS + limit} ms" if limit else ""
        row(f"`{what}`: without delay / with", f"{local:.1f} / {remote:.1f} ms", said)
    log = os.path.join(cluster.work, "turns")
    add_profile(other.root)
    other.phalanx("spawn", "ada", "--profile", "bench", "--backend", "pty", "--", os.path.join(FAKE, "fake-tui"), log)

    def turns():
        with open(log) as file:
            return len(file.readlines())

    until(lambda: os.path.exists(log) or other.phalanx("send", "ada", "first"))
    until(lambda: os.path.exists(log) and turns() == 1)
    figures = []
    for n in range(ROUNDS):
        until(lambda: other.phalanx("inbox", "ada", "--peek") == [])
        time.sleep(0.4)  # until the member has reported that it is idle
        before, began = turns(), time.perf_counter()
        far.phalanx("send", "ada", f"message {n}")
        until(lambda: turns() > before)
        figures.append((time.perf_counter() - began) * 1000)
    row("`send` started → wrapped member of another host has it", f"{statistics.median(figures):.1f} ms",
        f"limit {ROUND_TRIP_MS + 30} ms")
    other.phalanx("shutdown", "ada", "--force")
    near.phalanx("shutdown", "--all", "--force")
    near.phalanx("team", "delete", ok=False)


def spawns(cluster):
    """Spawns on a host behind ssh, against the same spawn on this machine."""
    missing = [program for program in ("sshd", "ip", "iptables", "unshare") if not (
        shutil.which(program) or os.path.exists(f"/usr/sbin/{program}"))]
    if missing or os.geteuid() != 0:
        return row("spawns on another host", "skipped", f"needs root, and {', '.join(missing) or 'nothing else'}")
    # A socket in a file system that the host sees. The host's own calls are not delayed.
    url = f"postgres://postgres@{cluster.data.replace('/', '%2F')}:{cluster.port}/postgres"
    here = cluster.host("here", url)
    stage = os.path.join(cluster.work, "hosts")
    os.mkdir(stage)
    process = subprocess.Popen(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", STAGE,
                                stage, "h1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdout.readline().strip() != "ready":
        sys.exit("the hosts do not start")
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as children, open(os.path.join(stage, "pid"), "w") as file:
        file.write(children.read().strip())
    here.env["PATH"] = f"{stage}/bin:{here.env['PATH']}"
    os.makedirs(os.path.join(here.root, "phalanx"))
    with open(os.path.join(here.root, "phalanx", "hosts.toml"), "w") as file:
        file.write(f'[[host]]\nname = "h1"\nssh = "h1"\ndir = "{stage}/h1/work"\n')
    os.chmod(os.path.join(here.root, "phalanx", "hosts.toml"), 0o600)
    here.phalanx("team", "create", "bench")
    here.phalanx("host", "check", "h1", "--install", "--yes", "--from", PROGRAM)
    process.stdin.write(f"delay {ROUND_TRIP_MS / 2}\n")
    process.stdin.flush()
    process.stdout.readline()
    print(f"spawn of {SPAWNED} members in tmux, ssh with a round trip of {ROUND_TRIP_MS} ms, median of {BATCHES} (whole process)")

    def batch(*where):
        names = [f"m{n}" for n in range(SPAWNED)]
        took = timed(lambda: here.phalanx("spawn", *names, "--backend", "tmux", *where, "--", "sleep", "300"))
        here.phalanx("shutdown", "--all", "--force")
        return took

    batch("--host", "h1")
    local, remote = ([batch(*where) for _ in range(BATCHES)] for where in ((), ("--host", "h1")))
    local, remote = statistics.median(local), statistics.median(remote)
    row("here / on the host, connection warm", f"{local:.0f} / {remote:.0f} ms", f"limit {local + 3 * ROUND_TRIP_MS:.0f} ms")
    here.phalanx("team", "delete", ok=False)
    process.stdin.close()
    process.wait()


def load(hosts, seconds, request):
    """Keeps one call to the broker of each host in flight; returns calls per second. `request` returns
    the function and the other arguments, as JSON text, for a host of so many and a key that is used
    once. One thread with prepared text, since the generator shares the cores with what it measures."""
    selector = selectors.DefaultSelector()
    numbers = itertools.count()
    brokers = [Broker(host) for host in hosts]

    def send(nth, broker):
        function, rest = request(nth, len(brokers), f"{os.getpid()}-{broker.socket.fileno()}-{next(numbers)}")
        body = (f'{{"id":1,"request":{{"call":{{"function":"{function}",'
                f'"arguments":{{"actor":{{}},"team":"bench",{rest}}}}}}}}}').encode()
        broker.socket.sendall(struct.pack(">I", len(body)) + body)

    for nth, broker in enumerate(brokers):
        selector.register(broker.socket, selectors.EVENT_READ, (nth, broker))
        send(nth, broker)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for key, _ in selector.select(seconds):
            nth, broker = key.data
            broker.buffer += broker.socket.recv(1 << 20)
            while len(broker.buffer) >= 4 and len(broker.buffer) >= 4 + struct.unpack(">I", broker.buffer[:4])[0]:
                length = struct.unpack(">I", broker.buffer[:4])[0]
                message, broker.buffer = broker.buffer[4 : 4 + length], broker.buffer[4 + length :]
                if b'"Err"' in message:
                    sys.exit(f"the store refuses: {message}")
                # Not the push with the clock of the database.
                if message.startswith(b'{"answer"'):
                    done += 1
                    send(nth, broker)
    rate = done / (time.perf_counter() - began)
    for broker in brokers:
        broker.socket.close()
    return rate


def a_message(nth, count, key):
    """A message to the first member of the next host, with its event."""
    now, to = int(time.time() * 1000), f"m{(nth + 1) % count}"
    body = f'{{\\"from\\":\\"lead\\",\\"text\\":\\"a message of ordinary length, as agents send them\\",\\"msg_id\\":\\"{key}\\"}}'
    event = f'{{\\"id\\":\\"{key}\\",\\"at\\":{now},\\"event\\":\\"message_sent\\",\\"member\\":\\"{to}\\"}}'
    return "append_mail", (f'"owner":"{to}","name":"bob","write":"{key}","entries":[{{"msg_id":"{key}","body":"{body}"}}],'
                           f'"journal":[{{"id":"{key}","at":{now},"body":"{event}"}}]')


def a_claim(nth, _, key):
    now = int(time.time() * 1000)
    return "claim", (f'"scope":"prompt","by":"m{nth}","at":{now},"event":"{key}","who":"m{nth}","role":null,'
                     f'"busy_check":false,"line":"\\"id\\":\\"{key}\\""')


def tasks(broker, count):
    for start in range(0, count, 500):
        ids = range(start + 1, min(start + 500, count) + 1)
        batch = [{"id": n, "expected": None, "state": "pending", "owner": None, "priority": 0, "role": None,
                  "internal": False, "has_command": False, "files": [], "blocked_by": [],
                  "claim_line": f'"event":"task_claimed","task":"{n}"',
                  "body": json.dumps({"id": str(n), "subject": f"task {n}", "description": "", "status": "pending",
                                      "blocks": [], "blockedBy": []})} for n in ids]
        broker.call("put_tasks", tasks=batch, mark=ids[-1], write=str(uuid.uuid4()))
        broker.answer()


def scale(cluster, count):
    """Load of `count` hosts, each with a broker and the subscriptions of its launchers."""
    query = "select count(*) from pg_stat_activity where backend_type = 'client backend'"
    # Brokers of the rows before stay for a minute.
    earlier = int(cluster.ask(query))
    hosts = [cluster.host(f"s{count}-{n}") for n in range(count)]
    lead = hosts[0]
    lead.phalanx("team", "create", "bench")
    lead.phalanx("spawn", "bob", "--backend", "pty")
    pid = lead.phalanx("lead", "--detach")["lead_pid"]
    for host in hosts[1:]:
        host.phalanx("status")
    launchers = []
    for nth, host in enumerate(hosts):
        for member in range(MEMBERS_PER_HOST):
            launcher = Broker(host)
            # The first member of each host gets the messages.
            own = f"m{nth}" if member == 0 else f"m{nth}-{member}"
            launcher.send({"subscribe": {"handle": 1, "team": "bench", "interest": {"member": own}}})
            launcher.answer()
            threading.Thread(target=launcher.drain, daemon=True).start()
            launchers.append(launcher)
    print(f"{count} hosts × {MEMBERS_PER_HOST} members without programs, database and clients on one machine")
    connections = int(cluster.ask(query)) - earlier
    row("connections of the database", str(connections), "limit 50")
    before = cpu_ms(pid)
    time.sleep(SECONDS)
    row("lead, idle team", f"{(cpu_ms(pid) - before) / SECONDS / 10:.1f} % of a core", "limit 5 %")
    before = cpu_ms(pid)
    messages = load(hosts, SECONDS, a_message)
    row("messages with their event", f"{messages:.0f} /s", "limit 2000 /s")
    row("lead, meanwhile", f"{(cpu_ms(pid) - before) / SECONDS / 10:.1f} % of a core")
    lead.phalanx("shutdown", "--all", "--force")
    lead.phalanx("down")
    for launcher in launchers:
        launcher.socket.close()
    # Without a lead, which would follow up on tasks of members that do not exist.
    lead.phalanx("team", "create", "bench")
    tasks(Broker(lead), TASKS)
    claims = load(hosts, SECONDS, a_claim)
    row("claims", f"{claims:.0f} /s", "limit 2000 /s")
    lead.phalanx("team", "delete")
    return messages, claims


def run():
    work = tempfile.mkdtemp(prefix="phxh", dir="/tmp")
    os.chmod(work, 0o755)
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    cluster = Cluster(work)
    subprocess.run([PROGRAM, "store", "init", cluster.url()], check=True, capture_output=True)
    commands(cluster)
    spawns(cluster)
    few, many = (scale(cluster, count) for count in HOSTS)
    for what, one, other in zip(("messages", "claims"), few, many):
        row(f"{what}: {HOSTS[1]} hosts against {HOSTS[0]}", f"{other / one:.2f} × the rate")
