"""The distribution's own kernel, unpacked below target/vm and never installed."""

import dataclasses
import pathlib
import re
import shutil
import subprocess

from here import CACHE, Trouble

# One package has the drivers; this one only depends on the newest.
NEWEST = "linux-image-amd64"


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel and its modules."""

    release: str
    image: pathlib.Path
    modules: pathlib.Path


def get():
    """The kernel, downloaded the first time."""
    place = CACHE / "kernel"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        if shutil.which("apt-get"):
            _from_debian(place)
        else:
            _from_this_machine(place)
        (place / "complete").touch()
    image = next(place.glob("boot/vmlinuz-*"))
    release = image.name.removeprefix("vmlinuz-")
    modules = next(path for path in (place / "usr/lib/modules", place / "lib/modules") if path.is_dir())
    return Kernel(release, image, modules / release)


def _from_debian(place):
    package = _output("apt-cache", "depends", NEWEST)
    package = re.search(r"Depends: (linux-image-\S+)", package)
    if not package:
        raise Trouble(f"{NEWEST} depends on no kernel; run apt-get update")
    print(f"vm: downloading {package[1]}", flush=True)
    subprocess.run(["apt-get", "download", "-qq", package[1]], cwd=place, check=True)
    archive = next(place.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", archive, place], check=True)
    archive.unlink()
    base = place / "usr" if (place / "usr/lib/modules").is_dir() else place
    # The package leaves this to its script of installation, which does not run here.
    release = next((base / "lib/modules").iterdir()).name
    subprocess.run(["depmod", "-b", base, release], check=True, env={"PATH": "/usr/sbin:/sbin:/usr/bin:/bin"})


def _from_this_machine(place):
    """Where there is no Debian, the kernel that runs."""
    release = _output("uname", "-r").strip()
    modules = pathlib.Path("/lib/modules") / release
    images = [pathlib.Path(f"/boot/vmlinuz-{release}"), modules / "vmlinuz"]
    image = next((path for path in images if path.exists()), None)
    if image is None or not modules.is_dir():
        raise Trouble(f"no kernel for the virtual machine: neither apt-get nor {images[0]} is here")
    (place / "boot").mkdir()
    (place / "lib/modules").mkdir(parents=True)
    shutil.copy(image, place / "boot" / f"vmlinuz-{release}")
    (place / "lib/modules" / release).symlink_to(modules)


def _output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
