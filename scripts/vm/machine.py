"""A virtual machine that runs the host's commands."""

import base64
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from here import Gone, Trouble

# In memory: the tests punch holes, and no disk of the host should have to trim them.
IMAGES = "/dev/shm" if os.path.isdir("/dev/shm") else None


@dataclasses.dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str


class Machine:
    """A running guest; leaving the `with` ends it and removes its images."""

    def __init__(self, kernel, initramfs, disks, memory="1G"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"trimbench-vm-{os.getpid()}-", dir=IMAGES))
        self.images = {disk.name: self.folder / f"{disk.name}.img" for disk in disks}
        self._kernel, self._initramfs, self._disks, self._memory = kernel, initramfs, disks, memory
        self._process = self._port = self._answers = None
        #: The drives' kernel names in the guest, by the names in `disks`.
        self.devices = {}
        self.console = self.folder / "console"

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._process:
            self._process.kill()
            self._process.wait()
        for end in (self._answers, self._port):
            if end:
                end.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        for disk in self._disks:
            with open(self.images[disk.name], "wb") as image:
                image.truncate(disk.size)
        path = self.folder / "commands"
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", "-nographic"]
        # Nested hardware virtualisation hangs on many machines that offer /dev/kvm.
        accelerator = os.environ.get("TRIMBENCH_VM_ACCELERATOR", "tcg")
        command += ["-machine", f"q35,accel={accelerator}", "-cpu", "max" if accelerator == "tcg" else "host"]
        command += ["-m", self._memory, "-kernel", self._kernel.image, "-initrd", self._initramfs]
        command += ["-append", "console=ttyS0 panic=-1 quiet loglevel=4 mitigations=off tsc=reliable"]
        command += ["-serial", f"file:{self.console}"]
        command += ["-chardev", f"socket,id=commands,path={path},server=on,wait=off"]
        command += ["-device", "virtio-serial-pci", "-device", "virtserialport,chardev=commands,name=commands"]
        for disk in self._disks:
            command += disk.options(self.images[disk.name])
        errors = open(self.folder / "qemu", "wb")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self._port = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + 10
        while True:
            try:
                self._port.connect(str(path))
                break
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise self._trouble("qemu did not start") from None
                time.sleep(0.05)
        self._answers = self._port.makefile("rb")
        if self._line(600) != b"ready":
            raise self._trouble("the guest did not boot")
        self.devices = self._find()

    def _find(self):
        """The guest's names of the drives, by ours: each has a size of its own."""
        sizes = {disk.size // 512: disk.name for disk in self._disks}
        deadline = time.monotonic() + 60
        while True:
            found = self.sh("cd /sys/block; grep . */size || true")
            lines = re.findall(r"^(\S+)/size:(\d+)$", found, re.MULTILINE)
            # A drive with several paths has hidden devices, one for each.
            devices = {sizes[int(size)]: name for name, size in lines
                       if int(size) in sizes and not re.fullmatch(r"nvme\d+c\d+n\d+", name)}
            if len(devices) == len(sizes):
                return devices
            if time.monotonic() > deadline:
                raise self._trouble(f"the guest lacks {sorted(set(sizes.values()) - set(devices))}")
            time.sleep(0.2)

    def _line(self, seconds):
        """The guest's next line; nothing may take longer than `seconds`."""
        self._port.settimeout(seconds)
        try:
            line = self._answers.readline()
        except OSError:
            raise self._trouble(f"no answer within {seconds} s") from None
        if not line.endswith(b"\n"):
            raise self._trouble("the guest is gone")
        return line.strip()

    def _trouble(self, what):
        said = ""
        for name in ("qemu", "console"):
            file = self.folder / name
            if file.exists():
                said += f"\n--- {name}:\n" + file.read_text(errors="replace")[-3000:]
        return Gone(what + said)

    def run(self, script, seconds=120):
        """Runs a bash script in the guest, whatever comes of it."""
        self._port.settimeout(seconds)
        self._port.sendall(base64.b64encode(script.encode()) + b"\n")
        code = int(self._line(seconds))
        out, err = (base64.b64decode(self._line(30)).decode(errors="replace") for _ in range(2))
        return Done(code, out, err)

    def sh(self, script, seconds=120):
        """The output of a script in the guest that must succeed."""
        done = self.run("set -e\n" + script, seconds)
        if done.code:
            raise Trouble(f"in the guest, exit code {done.code}: {script}\n{done.out}{done.err}")
        return done.out

    def json(self, script, seconds=120):
        """The output of a script as JSON."""
        return json.loads(self.sh(script, seconds))

    def used(self, *names):
        """Bytes that the host's images occupy: all that discards have not punched out."""
        return sum(os.stat(self.images[name]).st_blocks * 512 for name in names)

    @contextlib.contextmanager
    def peak(self, *names):
        """Watches the images while its body runs; yields a list that then holds the most they occupied."""
        most, ended = [self.used(*names)], threading.Event()

        def watch():
            while not ended.wait(0.01):
                most[0] = max(most[0], self.used(*names))

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield most
        finally:
            ended.set()
            thread.join()
