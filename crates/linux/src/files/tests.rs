//! Run in the directory of temporary files, whatever its file system.

use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

use super::*;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn creates_only_what_is_not_there() {
    let directory = directory();
    let path = directory.path().join("new");
    let file = create(&path, Caching::Buffered).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = create(&path, Caching::Buffered).unwrap_err();
    assert!(again.to_string().contains("new"), "{again}");
}

#[test]
fn does_not_create_through_a_symbolic_link() {
    let directory = directory();
    let elsewhere = directory.path().join("elsewhere");
    let link = directory.path().join("link");
    symlink(&elsewhere, &link).unwrap();
    assert!(create(&link, Caching::Buffered).is_err());
    assert!(!elsewhere.exists());
}

#[test]
fn opens_regular_files_alone() {
    let directory = directory();
    let fifo = directory.path().join("fifo");
    rustix::fs::mknodat(
        CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    for path in [fifo.as_path(), directory.path(), Path::new("/dev/null")] {
        let refused = open_read(path, Caching::Buffered).unwrap_err();
        assert!(matches!(refused, FileError::NotRegular { .. }), "{refused}");
    }
    assert!(matches!(
        open_read(directory.path().join("missing"), Caching::Buffered),
        Err(FileError::Open { .. })
    ));
}

#[test]
fn what_is_opened_can_be_read_and_written() {
    let directory = directory();
    let path = directory.path().join("file");
    std::fs::write(&path, b"before").unwrap();
    let file = open_write(&path, Caching::Buffered).unwrap();
    file.write_all_at(b"after!", 0).unwrap();
    let mut read = [0; 6];
    open_read(&path, Caching::Buffered)
        .unwrap()
        .read_exact_at(&mut read, 0)
        .unwrap();
    assert_eq!(&read, b"after!");
    assert!(
        open_read(&path, Caching::Buffered)
            .unwrap()
            .write_at(b"x", 0)
            .is_err()
    );
}

#[test]
fn the_probe_agrees_with_an_attempt_and_leaves_nothing() {
    let directory = directory();
    let verdict = probe_direct(directory.path()).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let attempt = create(directory.path().join("file"), Caching::Direct);
    match verdict {
        DirectIo::Works(alignment) => {
            assert!(alignment.offset_bytes >= 512);
            assert_eq!(direct_alignment(&attempt.unwrap()), alignment);
        }
        DirectIo::Memory => {}
        DirectIo::Refused(_) => assert!(matches!(attempt, Err(FileError::Direct { .. }))),
    }
    let missing = probe_direct(directory.path().join("missing")).unwrap_err();
    assert!(missing.to_string().contains("no file can be made"));
}

#[test]
fn memory_is_called_memory() {
    if testkit::gate::lacks(&[testkit::gate::Need::File("/dev/shm")]) {
        return;
    }
    assert!(matches!(
        probe_direct("/dev/shm").unwrap(),
        DirectIo::Memory
    ));
}

#[test]
fn holes_take_no_space() {
    let directory = directory();
    let path = directory.path().join("sparse");
    let file = create(&path, Caching::Buffered).unwrap();
    file.set_len(1 << 30).unwrap();
    assert!(allocated_bytes(&file.metadata().unwrap()) < 1 << 20);
    file.write_all_at(&[7; 1 << 16], 1 << 29).unwrap();
    syncfs(directory.path()).unwrap();
    let allocated = allocated_bytes(&file.metadata().unwrap());
    assert!((1 << 16..1 << 20).contains(&allocated), "{allocated}");
}
