//! `trimbench fstrim` beside a reader, on simulated drives whose discards slow reads down.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;

use super::fstrim::{fstrim, trimmed};
use crate::common::gate::{Need, beside, lacks};
use crate::common::loop_fs::must;
use crate::common::run::{start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

/// Discards of a device so far: how many, of how many sectors, and their milliseconds.
pub fn discards(device: &Path) -> [u64; 3] {
    let name = device.file_name().unwrap().to_string_lossy();
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let field = |at: usize| text.split_whitespace().nth(at).unwrap().parse::<u64>();
    [11, 13, 14].map(|at| field(at).unwrap())
}

/// The free space is trimmed whole, in few discards, and the drive is left to the reader for most
/// of the time. An eighth of a second's discards at least, at 20 %.
fn paced(fs: &str) {
    if lacks(NEEDS) || lacks(&[Need::Tool("fstrim"), Need::Tool("fallocate")]) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount().to_string_lossy().into_owned();
    let name = lab
        .dir()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let kind = format!("--profile t500 --slower 8 --size 1536M --fs {fs} -o nodiscard --mount");
    let device = lab.up(&name, &kind.split(' ').chain([&*mount]).collect::<Vec<_>>());
    let read = format!("{mount}/read");
    must(
        "dd",
        &[
            "if=/dev/urandom",
            &format!("of={read}"),
            "bs=1M",
            "count=4",
            "conv=fsync",
        ],
    );
    if fs == "btrfs" {
        // What belongs to no chunk is trimmed in one call, once: that has been.
        let gone = format!("{mount}/gone");
        must("fallocate", &["-l", "900M", &gone]);
        std::fs::remove_file(&gone).unwrap();
        File::open(&mount).unwrap().sync_all().unwrap();
        must("fstrim", &[&mount]);
    }
    let mut reader = trimbench();
    let again = "while dd if=$0 of=/dev/null bs=4k iflag=direct 2>/dev/null; do :; done";
    reader.args(["lab", "exec", &name, "--", "sh", "-c", again, &read]);
    let reader = start(lab.in_here(reader));
    let states = tempfile::tempdir().unwrap();
    let (before, began) = (discards(&device), Instant::now());
    let arguments = ["--verbose", "--slowdown", "20%", &mount];
    let mut trim = start(lab.in_here(fstrim(states.path(), &arguments)));
    trim.until("it discards", || discards(&device) != before);
    let done = trim.wait();
    let took = began.elapsed().as_secs_f64();
    reader.signal(Signal::TERM);
    drop(reader);
    let after = discards(&device);
    let [count, sectors, ms] = [0, 1, 2].map(|i| after[i] - before[i]);
    let said = format!("{fs}: {count} of {sectors} sectors, {ms} ms in {took:.2} s: ");
    let text = said + &done.succeeds().text();
    let mib = sectors / 2048;
    assert!(mib > 800, "{text}");
    // The first pieces are small; then none is cut for nothing.
    let few = count < 30 + mib / 32;
    assert!(few && (ms as f64) < 1e3 * took / 2.0, "{text}");
}

#[test]
fn ext4_is_paced() {
    paced("ext4");
}

#[test]
fn xfs_is_paced() {
    paced("xfs");
}

#[test]
fn btrfs_is_paced() {
    paced("btrfs");
}

/// Files of 1 to 5 MiB, of which each second is removed, and each tenth ends early.
fn fragment(mount: &Path) {
    let path = |i: usize| mount.join(format!("part{i}"));
    for i in 0..240 {
        std::fs::write(path(i), vec![7u8; (i % 5 + 1) << 20]).unwrap();
    }
    let mount = mount.to_string_lossy();
    must("sync", &["-f", &mount]);
    for i in 0..240 {
        match i {
            _ if i % 2 > 0 => std::fs::remove_file(path(i)).unwrap(),
            _ if i % 10 == 0 => File::options()
                .write(true)
                .open(path(i))
                .unwrap()
                .set_len(100_000)
                .unwrap(),
            _ => {}
        }
    }
    must("sync", &["-f", &mount]);
}

/// Each block once: as many discards and bytes as util-linux's fstrim sends, but for the file of the
/// canary, and no more than `--dry-run` promises.
#[test]
fn a_fragmented_ext4_is_discarded_as_fstrim_discards_it() {
    if lacks(NEEDS) || lacks(&[Need::Tool("fstrim")]) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount().to_string_lossy().into_owned();
    let kind = "--profile ocz-agility-2 --size 1G --fs ext4 -o nodiscard --mount";
    let device = lab.up(
        "once",
        &kind.split(' ').chain([&*mount]).collect::<Vec<_>>(),
    );
    fragment(Path::new(&mount));
    let states = tempfile::tempdir().unwrap();
    // ext4 forgets what is trimmed.
    let anew = || {
        must("umount", &[&mount]);
        must(
            "mount",
            &["-o", "nodiscard", &device.to_string_lossy(), &mount],
        );
        discards(&device)
    };
    let sent = |before: [u64; 3]| {
        let after = discards(&device);
        [after[0] - before[0], (after[1] - before[1]) * 512]
    };
    let before = anew();
    must("fstrim", &[&mount]);
    let [commands, bytes] = sent(before);
    let before = anew();
    let promise = trimmed(states.path(), &["--dry-run", &mount]);
    let done = trimmed(states.path(), &["--slowdown", "20%", &mount]);
    let [ours, our_bytes] = sent(before);
    let text = format!(
        "{ours} of {our_bytes} B beside {commands} of {bytes} B: {}{}",
        promise.succeeds().text(),
        done.succeeds().text()
    );
    assert!(commands > 60, "{text}");
    assert!(ours.abs_diff(commands) <= 4, "{text}");
    assert!(
        our_bytes <= bytes && our_bytes > bytes - (16 << 20),
        "{text}"
    );
    let promised = text.split_once(" discards\n").unwrap().0;
    let promised = promised.rsplit_once(' ').unwrap().1.replace(',', "");
    assert!(ours <= promised.parse::<u64>().unwrap() + 4, "{text}");
}
