//! Filling real files.

use std::io::Read;
use std::os::unix::fs::MetadataExt;

use super::*;

fn spec(file: &File, len: u64) -> FillSpec {
    FillSpec {
        file: Arc::new(file.try_clone().expect("clone")),
        path: "victim".into(),
        len,
        direct: true,
        extent_bytes: None,
        seed: 1,
    }
}

fn fill(spec: FillSpec) -> FillReport {
    Fill::start(spec).expect("starts").wait().expect("fills")
}

#[test]
fn the_data_is_incompressible_and_never_repeats() {
    let mut file = tempfile::tempfile().expect("temporary file");
    let len = 5 * (1 << 20) + 1234;
    let report = fill(spec(&file, len));
    assert_eq!((report.written_bytes, report.stopped), (len, false));
    let mut bytes = Vec::new();
    io::Seek::rewind(&mut file).expect("rewind");
    file.read_to_end(&mut bytes).expect("read");
    assert_eq!(bytes.len() as u64, len);
    let compressed = {
        // Equal shares of all byte values, and no block twice.
        let mut counts = [0u32; 256];
        bytes
            .iter()
            .for_each(|&byte| counts[usize::from(byte)] += 1);
        let mean = bytes.len() as u32 / 256;
        counts.iter().all(|&count| count.abs_diff(mean) < mean / 20)
    };
    assert!(compressed, "byte values are unevenly used");
    let mut blocks: Vec<&[u8]> = bytes.chunks(4096).collect();
    let all = blocks.len();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks.len(), all);
}

#[test]
fn lengths_are_exact_directly_and_through_the_cache() {
    for direct in [false, true] {
        for len in [0, 1, 4096, 4097, (1 << 20) + 512] {
            let file = tempfile::tempfile().expect("temporary file");
            fill(FillSpec {
                direct,
                ..spec(&file, len)
            });
            let stat = file.metadata().expect("stat");
            assert_eq!(stat.len(), len);
            assert!(stat.blocks() * 512 >= len, "no holes");
        }
    }
}

#[test]
fn a_stop_ends_it_early() {
    let file = tempfile::tempfile().expect("temporary file");
    let fill = Fill::start(spec(&file, 4 << 30));
    // A disk that small refuses at once, which is right too.
    let fill = fill.expect("starts");
    fill.stop();
    match fill.wait() {
        Ok(report) => assert!(report.stopped && report.written_bytes < 4 << 30),
        Err(error) => assert!(matches!(error, LoadError::NoSpace { .. }), "{error}"),
    }
}

#[test]
fn what_is_stopped_is_not_written_back() {
    // It takes all that is written, and refuses fsync.
    let null = File::options().write(true).open("/dev/null").expect("open");
    assert!(null.sync_all().is_err(), "too willing to tell");
    let whole = |len| FillSpec {
        direct: false,
        ..spec(&null, len)
    };
    let fill = Fill::start(whole(1 << 50)).expect("starts");
    fill.stop();
    assert!(fill.wait().expect("no sync").stopped);
    Fill::start(whole(1))
        .expect("starts")
        .wait()
        .expect_err("a sync");
}

#[test]
fn an_odd_extent_size_is_refused() {
    let file = tempfile::tempfile().expect("temporary file");
    for extent in [0, 1000] {
        Fill::start(FillSpec {
            extent_bytes: Some(extent),
            ..spec(&file, 1 << 20)
        })
        .expect_err("no multiple of 4096");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let path = tempfile::NamedTempFile::new().expect("temporary file");
    let read_only = File::open(path.path()).expect("open");
    let error = Fill::start(FillSpec {
        direct: false,
        ..spec(&read_only, 4096)
    })
    .expect("starts")
    .wait()
    .expect_err("opened for reading only");
    assert!(error.to_string().contains("victim"), "{error}");
}
