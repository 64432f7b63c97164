"""The guest's whole system: busybox, trimbench, the tools that it is compared with, and modules."""

import os
import pathlib
import re
import shutil
import stat
import subprocess

from here import CACHE, Trouble

# The guest's tools, of other projects. mkfs and mount of busybox know too little.
TOOLS = """
    nvme hdparm sg_vpd sg_readcap lsblk blkdiscard blkid wipefs fstrim mount umount losetup dmsetup lvm
    mdadm cryptsetup mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.f2fs mkfs.exfat thin_check make-bcache
    bash filefrag sha256sum dd
""".split()
# Modules by name; those that they need come with them.
MODULES = """
    virtio_pci virtio_console virtio_blk virtio_scsi nvme ahci sd_mod sr_mod usb_storage uas
    xhci_pci scsi_debug dm_mod dm_crypt dm_thin_pool dm_mirror dm_raid dm_cache_smq dm_multipath
    md_mod raid0 raid1 raid10 raid456 bcache ext4 xfs btrfs f2fs exfat vfat nls_ascii nls_cp437
    nls_utf8 loop fuse aesni_intel xts ecb cbc essiv sha256_generic algif_skcipher
    crc32c_generic crc32c_intel crc32_generic crct10dif_generic libcrc32c
""".split()
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LVM_CONF = """
activation { udev_sync = 0  udev_rules = 0  verify_udev_operations = 1  monitoring = 0 }
devices { obtain_device_list_from_udev = 0  external_device_info_source = "none" }
backup { backup = 0  archive = 0 }
"""


def build(kernel, program):
    """Packs the system; the path of the archive."""
    tree = CACHE / "tree"
    stamp = _stamp(kernel, program)
    archive, mark = CACHE / "initramfs.cpio", CACHE / "initramfs.stamp"
    if archive.exists() and mark.exists() and mark.read_text() == stamp:
        return archive
    shutil.rmtree(tree, ignore_errors=True)
    for folder in "bin sbin usr/bin usr/sbin dev proc sys tmp run mnt etc/lvm var/lib lib64".split():
        (tree / folder).mkdir(parents=True, exist_ok=True)
    _put_program(tree, program, "usr/bin/trimbench")
    for tool in TOOLS:
        _put_program(tree, _which(tool), f"usr/sbin/{tool}")
    _put_program(tree, _which("busybox"), "bin/busybox")
    (tree / "bin/sh").symlink_to("busybox")
    (tree / "sbin/modprobe").symlink_to("../bin/busybox")
    shutil.copy(pathlib.Path(__file__).parent / "init", tree / "init")
    (tree / "init").chmod(0o755)
    (tree / "etc/lvm/lvm.conf").write_text(LVM_CONF)
    (tree / "etc/mtab").symlink_to("/proc/self/mounts")
    _put_modules(tree, kernel)
    _pack(tree, archive)
    shutil.rmtree(tree)
    mark.write_text(stamp)
    return archive


def _stamp(kernel, program):
    """What the archive depends on."""
    sources = [program, *sorted(pathlib.Path(__file__).parent.glob("init*"))]
    return "\n".join([kernel.release] + [f"{path} {path.stat().st_mtime_ns}" for path in sources])


def _which(tool):
    path = shutil.which(tool, path=PATH)
    if path is None:
        raise Trouble(f"{tool} is missing; run scripts/setup test")
    return pathlib.Path(path).resolve()


def _put_program(tree, program, place):
    """A program with its libraries; symbols for debuggers stay behind."""
    target = tree / place
    shutil.copy(program, target)
    subprocess.run(["strip", "--strip-debug", target], stderr=subprocess.DEVNULL, check=False)
    libraries = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    for library in re.findall(r"(/\S+) \(0x", libraries.stdout):
        copy = tree / library.lstrip("/")
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, copy)


def _put_modules(tree, kernel):
    needs = {}
    for line in (kernel.modules / "modules.dep").read_text().splitlines():
        file, _, others = line.partition(":")
        needs[file] = others.split()
    by_name = {pathlib.Path(file).name.split(".")[0].replace("-", "_"): file for file in needs}
    # What isn't a module is built in.
    wanted = [by_name[name] for name in MODULES if name in by_name]
    place = tree / "lib/modules" / kernel.release
    for file in set(wanted).union(*(needs[file] for file in wanted)):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kernel.modules / file, place / file)
    subprocess.run(["depmod", "-b", tree, kernel.release], check=True, stderr=subprocess.DEVNULL, env={"PATH": PATH})


def _pack(tree, archive):
    """Writes the cpio archive (newc) itself: ours need no root, and all files are root's."""
    with open(archive, "wb") as out:
        for number, path in enumerate(sorted(tree.rglob("*")), 1):
            info = path.lstat()
            data = b""
            if stat.S_ISLNK(info.st_mode):
                data = os.readlink(path).encode()
            elif stat.S_ISREG(info.st_mode):
                data = path.read_bytes()
            _entry(out, number, str(path.relative_to(tree)), info.st_mode, data)
        _entry(out, 0, "TRAILER!!!", 0, b"")


def _entry(out, number, name, mode, data):
    name = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
    header = b"070701" + b"".join(b"%08x" % field for field in fields)
    out.write(header + name + b"\0" * (-(len(header) + len(name)) % 4))
    out.write(data + b"\0" * (-len(data) % 4))
