"""`suite --steps engines` on a drive with a queue for polling, beside the kernel's word about it."""

from cases import case, same
from cases.layers import disk


@case
def suite_polls_a_drive_that_has_queues_for_polling(guest):
    # `init` loads nvme with poll_queues=1.
    device = guest.devices["spaces"]
    can = guest.sh(f"cat /sys/block/{device}/queue/io_poll").strip()
    assert can == "1", f"{device}: queue/io_poll is {can}"
    told = guest.json(
        f"rm -f /tmp/e.jsonl; trimbench suite {disk(guest, 'spaces')} --destroy-data --cells ext4/nodiscard/discard "
        "--steps engines --quick --set repeats=1 --set files=2 --set size=64M --output /tmp/e.jsonl >&2; "
        "trimbench suite report /tmp/e.jsonl --format json", 300)
    (engines,) = told["cells"][0]["engines"]
    runs = {(run["engine"], run["batch"]): run for run in engines["runs"] if run["cache"] == "direct"}
    same("spaces", "polled reads", runs["io_uring-iopoll", 1]["why"] is None, "queue/io_poll", can == "1")
    # By interrupt one by one and in batches, by polling the drive, and by a thread that polls for submissions.
    for way in (("io_uring", 1), ("io_uring", 8), ("io_uring-iopoll", 1), ("io_uring-sqpoll", 1)):
        assert runs[way]["reads_per_s"] > 0, runs[way]
