"""The guest's drives: one of each kind that treats discards in its own way."""

import dataclasses

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Disk:
    """A drive with an image on the host. `%` in its options stands for the image's node."""

    name: str
    #: QEMU's options, without the image itself.
    devices: tuple
    #: Whether the host punches what the guest discards.
    unmap: bool = True
    #: The most operations a second, of any kind: each discard costs one, so small ones cost more.
    operations: int = 0
    #: Its size, which tells it from the others in the guest.
    size: int = 0

    def options(self, image):
        """QEMU's arguments."""
        discard = "unmap" if self.unmap else "ignore"
        node = f"node-{self.name}"
        file = f"driver=file,filename={image},discard={discard}"
        raw = f"driver=raw,discard={discard},{_inside(file)}"
        words = []
        if self.operations:
            group = f"group-{self.name}"
            words = ["-object", f"throttle-group,id={group},x-iops-total={self.operations}"]
            raw = f"driver=throttle,throttle-group={group},discard={discard},{_inside(raw)}"
        words += ["-blockdev", f"node-name={node},{raw}"]
        for device in self.devices:
            words += ["-device", device.replace("%", node)]
        return words


def _inside(node):
    """The options of a node as those of the node above it."""
    return ",".join(f"file.{option}" for option in node.split(","))


_KINDS = [
    # One subsystem with two controllers: Linux shows one drive with two paths.
    Disk("paths", (
        "nvme-subsys,id=two,nqn=two",
        "nvme,id=path0,serial=paths,subsys=two",
        "nvme,id=path1,serial=paths,subsys=two",
        "nvme-ns,bus=path0,drive=%,nsid=1,shared=on,uuid=00000000-0000-4000-8000-000000000001",
    )),
    # A drive with two namespaces, the second with blocks of 4 KiB.
    Disk("spaces", (
        "nvme,id=spaces,serial=spaces",
        "nvme-ns,bus=spaces,drive=%,nsid=1,uuid=00000000-0000-4000-8000-000000000002",
    )),
    Disk("space4k", (
        "nvme-ns,bus=spaces,drive=%,nsid=2,logical_block_size=4096,physical_block_size=4096,"
        "uuid=00000000-0000-4000-8000-000000000003",
    )),
    Disk("sata", ("ide-hd,bus=ide.0,drive=%,serial=sata,rotation_rate=1",)),
    Disk("sata-no-trim", ("ide-hd,bus=ide.1,drive=%,serial=notrim,discard_granularity=0",), unmap=False),
    Disk("scsi", ("virtio-scsi-pci,id=bus", "scsi-hd,bus=bus.0,drive=%,serial=scsi,rotation_rate=1")),
    Disk("scsi-ignore", ("scsi-hd,bus=bus.0,drive=%,serial=ignore,rotation_rate=1",), unmap=False),
    Disk("virtio", ("virtio-blk-pci,drive=%,serial=virtio,discard=on",)),
    Disk("virtio-off", ("virtio-blk-pci,drive=%,serial=virtiooff,discard=off",), unmap=False),
    Disk("usb", ("qemu-xhci,id=xhci", "usb-storage,bus=xhci.0,drive=%,serial=usb")),
    Disk("slow", ("scsi-hd,bus=bus.0,drive=%,serial=slow,rotation_rate=1",), operations=150),
    Disk("uas", ("usb-uas,id=uas,bus=xhci.0", "scsi-hd,bus=uas.0,drive=%,serial=uas")),
]
DISKS = [dataclasses.replace(disk, size=(2048 + index) * MIB) for index, disk in enumerate(_KINDS)]
