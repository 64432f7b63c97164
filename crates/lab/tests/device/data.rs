//! Data are kept, discards free them, and a premapped drive is full.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use lab::Fs;

use crate::common::{Bench, NAME, cannot, must};

#[test]
fn keeps_what_was_written_and_frees_what_was_discarded() {
    if cannot(&["blkdiscard", "fio"]) {
        return;
    }
    let bench = Bench::new("crucial-t500-2tb", &[], 256, |_| {});
    let device = bench.device().to_str().unwrap();
    must(
        "fio",
        &[
            "--name=fill",
            &format!("--filename={device}"),
            "--rw=write",
            "--bs=1M",
            "--size=64M",
            "--direct=1",
            "--verify=crc32c",
            "--do_verify=1",
            "--verify_state_save=0",
            "--output=/dev/null",
        ],
    );
    let before = bench.lab.stats(NAME).unwrap();
    assert_eq!(before.mapped_bytes, 64 << 20);
    assert_eq!(before.stored_bytes, 64 << 20);

    must("blkdiscard", &["-o", "16M", "-l", "32M", device]);
    let file = fs::File::open(bench.device()).unwrap();
    let mut data = vec![1; 1 << 20];
    file.read_exact_at(&mut data, 20 << 20).unwrap();
    assert!(data.iter().all(|&b| b == 0));
    file.read_exact_at(&mut data, 50 << 20).unwrap();
    assert!(data.iter().any(|&b| b != 0), "beside it nothing changed");
    let after = bench.lab.stats(NAME).unwrap();
    assert_eq!(after.mapped_bytes, 32 << 20);
    assert_eq!(after.kinds[3].bytes, 32 << 20);
    // A thread of its own frees the memory.
    let freed = |_| bench.lab.stats(NAME).unwrap().stored_bytes == 32 << 20;
    assert!((0..1000).any(|i| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        freed(i)
    }));
}

#[test]
fn a_premapped_drive_is_full_and_takes_no_memory() {
    if cannot(&["blkdiscard"]) {
        return;
    }
    let tib = 1 << 20;
    let bench = Bench::new("emc-xtremio-10tb", &[], 10 * tib, |spec| {
        spec.premapped = true;
        spec.slower = 0.001;
    });
    let stats = bench.lab.stats(NAME).unwrap();
    assert_eq!((stats.mapped_bytes, stats.stored_bytes), (10 << 40, 0));

    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(bench.device());
    let file = file.unwrap();
    let at = 7 << 40;
    let mut data = [0; 16];
    file.read_exact_at(&mut data, at).unwrap();
    assert_eq!(data[..8], (at ^ 0x7472_696d_0000_0000_u64).to_le_bytes());
    file.write_all_at(b"written", at).unwrap();
    file.sync_all().unwrap();
    must(
        "blkdiscard",
        &["-o", "6T", "-l", "512G", bench.device().to_str().unwrap()],
    );
    let stats = bench.lab.stats(NAME).unwrap();
    assert_eq!(stats.mapped_bytes, (10 << 40) - (512 << 30));
    assert!(stats.stored_bytes <= 1 << 20);
    file.read_exact_at(&mut data, 6 << 40).unwrap();
    assert_eq!(data, [0; 16]);
}

#[test]
fn a_store_that_is_full_fails_writes_and_nothing_else() {
    if cannot(&["dd"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |spec| {
        spec.store_limit_bytes = Some(8 << 20);
    });
    let device = format!("of={}", bench.device().display());
    let dd = |mib: &str| {
        let count = format!("count={mib}");
        crate::common::run(
            "dd",
            &["if=/dev/zero", &device, "bs=1M", &count, "oflag=direct"],
        )
    };
    let full = dd("32");
    assert!(!full.status.success());
    let said = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(said.contains("Input/output error"), "{said}");
    // Writing over what is there takes no more room, and the drive lives on.
    assert!(dd("8").status.success());
    assert!(bench.lab.stats(NAME).unwrap().kinds[1].failed > 0);
}

#[test]
fn a_store_in_a_file_outlives_the_drive() {
    if cannot(&[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let bench = Bench::new("no-trim", &[], 16, |spec| spec.store = Some(store.clone()));
    let file = OpenOptions::new().write(true).open(bench.device()).unwrap();
    file.write_all_at(b"kept", 4096).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let queue = std::path::Path::new("/sys/block")
        .join(bench.device().file_name().unwrap())
        .join("queue/discard_max_bytes");
    assert_eq!(fs::read_to_string(queue).unwrap().trim(), "0", "no TRIM");
    drop(bench);
    let data = fs::read(&store).unwrap();
    assert_eq!((data.len(), &data[4096..4100]), (16 << 20, &b"kept"[..]));
}

#[test]
fn every_file_system_sends_its_discards_to_the_drive() {
    for (fs, program) in [
        (Fs::Ext4, "mkfs.ext4"),
        (Fs::Xfs, "mkfs.xfs"),
        (Fs::Btrfs, "mkfs.btrfs"),
    ] {
        if cannot(&[program]) {
            continue;
        }
        let mount = Bench::mount_point();
        let bench = Bench::new("samsung-870-evo-2tb", &[], 512, |spec| {
            spec.fs = Some(fs);
            spec.mount = Some(mount);
            // By itself btrfs waits two minutes.
            spec.options = "discard".to_owned();
            spec.slower = 0.1;
        });
        let file = bench.mount().join("file");
        let sync = || {
            must("sync", &["-f", bench.mount().to_str().unwrap()]);
        };
        fs::write(&file, vec![7; 32 << 20]).unwrap();
        sync();
        let before = bench.lab.stats(NAME).unwrap();
        assert!(before.mapped_bytes > 32 << 20, "{fs:?}");
        fs::remove_file(&file).unwrap();
        sync();
        // ext4 and XFS discard after the sync, from the kernel's threads; XFS
        // frees a file's space in the background first.
        let discarded = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            sync();
            let now = bench.lab.stats(NAME).unwrap().unmapped_bytes;
            now - before.unmapped_bytes >= 30 << 20
        });
        assert!(discarded, "{fs:?}");
    }
}
