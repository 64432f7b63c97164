//! `trimbench fstrim` beside a reader, on simulated drives whose discards slow reads down.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;

use super::fstrim::fstrim;
use crate::common::gate::{Need, beside, lacks, thrice};
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
    thrice(|| trimmed_on_a_drive(fs));
}

/// Why it tells nothing: a busy machine adds to the time of each discard, so that they are cut
/// smaller, and may take more of the time than they should.
fn trimmed_on_a_drive(fs: &str) -> Result<(), String> {
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
    match few && (ms as f64) < 1e3 * took / 2.0 {
        true => Ok(()),
        false => Err(text),
    }
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
