//! Ours is removed, whatever happened; others' is left, whatever it is called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};

use rustix::fs::{CWD, FileType};

use super::*;

fn parent() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// As if the process had been killed: the lock goes, the directory stays.
fn killed(work: WorkDir) -> PathBuf {
    let path = work.path().to_path_buf();
    let mut work = work;
    work.removed = true;
    drop(work);
    path
}

fn fill(work: &WorkDir) {
    for name in [Name::Victim(1), Name::Foreground, Name::Victim(9)] {
        let file = work.create_file(name, Caching::Buffered).unwrap();
        file.write_all_at(&[7; 1 << 16], 0).unwrap();
        file.sync_all().unwrap();
    }
    work.link(Name::Victim(1), Name::Second(1)).unwrap();
}

#[test]
fn dropping_it_leaves_nothing() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let mode = fs::metadata(work.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(work);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// A folder with a few files, one of which has no name in text.
fn furnish(work: &WorkDir, folder: Folder) -> PathBuf {
    let path = work.create_folder(folder).unwrap();
    let nameless = OsStr::from_bytes(b"\xff\xfe");
    for name in [OsStr::new("l0-000001.sst"), OsStr::new("owner"), nameless] {
        let file = fs::File::create(path.join(name)).unwrap();
        file.write_all_at(&[7; 1 << 16], 0).unwrap();
        file.sync_all().unwrap();
    }
    path
}

#[test]
fn folders_go_with_whatever_files_are_in_them() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    for folder in [Folder::Actor(1), Folder::Actor(2), Folder::Deleter] {
        let path = furnish(&work, folder);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
    assert!(
        work.create_folder(Folder::Deleter).is_err(),
        "there is one already"
    );
    work.create_file_in(Folder::Deleter, "swap", Caching::Buffered)
        .unwrap();
    assert!(work.path_of_folder(Folder::Deleter).join("swap").exists());
    work.empty_folder(Folder::Deleter).unwrap();
    let emptied = fs::read_dir(work.path_of_folder(Folder::Deleter)).unwrap();
    assert_eq!(emptied.count(), 0);
    work.remove().unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn folders_of_a_killed_run_are_swept() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    furnish(&work, Folder::Actor(7));
    furnish(&work, Folder::Deleter);
    killed(work);
    match &swept_once_free(parent.path())[..] {
        [Swept::Removed { bytes, .. }] => assert!(*bytes <= 7 << 16, "{bytes}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn what_is_no_regular_file_stays_in_a_folder_and_keeps_it() {
    let parent = parent();
    let precious = parent.path().join("precious");
    fs::write(&precious, b"precious").unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let folder = furnish(&work, Folder::Deleter);
    furnish(&work, Folder::Actor(1));
    let path = killed(work);
    symlink(&precious, folder.join("link")).unwrap();
    fs::create_dir(folder.join("sub")).unwrap();
    fs::write(folder.join("sub/deep"), b"mine").unwrap();
    let fifo = folder.join("fifo");
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
    match &swept_once_free(parent.path())[..] {
        [Swept::Left { because, .. }] => {
            assert!(because.contains("deleter/"), "{because}");
        }
        other => panic!("{other:?}"),
    }
    let names = |path: &Path| {
        let names = fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&folder), ["fifo", "link", "sub"]);
    assert_eq!(names(&path), ["deleter", "owner"]);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert_eq!(fs::read(folder.join("sub/deep")).unwrap(), b"mine");
    fs::remove_file(folder.join("link")).unwrap();
    fs::remove_file(fifo).unwrap();
    fs::remove_dir_all(folder.join("sub")).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Removed { .. }]
    ));
}

#[test]
fn what_only_bears_a_folders_name_stays() {
    let parent = parent();
    let elsewhere = parent.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), b"precious").unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    let path = killed(work);
    symlink(&elsewhere, path.join("deleter")).unwrap();
    fs::write(path.join("actor-000002"), b"mine").unwrap();
    // One into which others may have put their files.
    let open = path.join("actor-000001");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(open.join("file"), b"theirs").unwrap();
    // A folder where a file should be.
    fs::create_dir(path.join("append-000001")).unwrap();
    let swept = swept_once_free(parent.path());
    assert!(matches!(&swept[..], [Swept::Left { .. }]), "{swept:?}");
    assert!(elsewhere.join("file").exists() && open.join("file").exists());
    assert_eq!(fs::read_dir(&path).unwrap().count(), 5);
}

#[test]
fn what_an_outside_deleter_left_in_its_trash_goes_too() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let trash = work.path().join(".trimbench-trash-abcd2345");
    fs::create_dir(&trash).unwrap();
    fs::set_permissions(&trash, fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["owner", "journal", "000001"] {
        fs::write(trash.join(name), name).unwrap();
    }
    // Not a trash's name.
    let other = work.path().join(".trimbench-trash-abcd");
    fs::create_dir(&other).unwrap();
    assert!(work.remove().is_err());
    assert!(other.exists() && !trash.exists());
    fs::remove_dir(&other).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Removed { .. }]
    ));
}

#[test]
fn what_somebody_removed_already_is_no_error() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    fs::remove_file(work.path_of(Name::Foreground)).unwrap();
    work.remove().unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    fs::remove_dir_all(work.path()).unwrap();
    work.remove().unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

/// Sweeps, again while something is in use: a program that another test starts has the lock's
/// descriptor, too, until its exec.
fn swept_once_free(parent: &Path) -> Vec<Swept> {
    for _ in 0..500 {
        let swept = sweep(parent).unwrap();
        if !swept.iter().any(|one| matches!(one, Swept::InUse { .. })) {
            return swept;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    sweep(parent).unwrap()
}

#[test]
fn leftovers_are_recognised_and_removed() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let path = killed(work);
    match &swept_once_free(parent.path())[..] {
        [
            Swept::Removed {
                path: swept,
                bytes,
                pid,
            },
        ] => {
            assert_eq!((swept, *pid), (&path, Some(std::process::id())));
            // Three files; the second name counts once. Some file systems compress.
            assert!(*bytes <= 4 << 16, "{bytes}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!path.exists());
    assert_eq!(sweep(parent.path()).unwrap(), []);
}

#[test]
fn a_living_one_is_not_touched() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    assert!(matches!(
        &sweep(parent.path()).unwrap()[..],
        [Swept::InUse { pid: Some(_), .. }]
    ));
    assert!(work.path_of(Name::Victim(1)).exists());
    work.remove().unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn an_empty_one_goes_too() {
    let parent = parent();
    let path = parent.path().join(".trimbench-abcdefgh");
    fs::create_dir(&path).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Removed { bytes: 0, .. }]
    ));
    assert!(!path.exists());
}

#[test]
fn other_peoples_directories_stay() {
    let parent = parent();
    let make = |name: &str, owner: Option<&str>| {
        let path = parent.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("victim-000001"), b"precious").unwrap();
        if let Some(text) = owner {
            fs::write(path.join("owner"), text).unwrap();
        }
        path
    };
    let paths = [
        make(".trimbench-aaaaaaa1", None),
        make(".trimbench-aaaaaaa2", Some("")),
        make(".trimbench-aaaaaaa3", Some("{\"pid\": 1}")),
        make(
            ".trimbench-aaaaaaa4",
            Some("{\"format\":\"trimbench.owner/1\"}"),
        ),
    ];
    let unnamed = make(".trimbench-other", None);
    let swept = swept_once_free(parent.path());
    assert_eq!(swept.len(), paths.len());
    assert!(
        swept.iter().all(|one| matches!(one, Swept::Left { .. })),
        "{swept:?}"
    );
    for path in paths.iter().chain([&unnamed]) {
        assert!(path.join("victim-000001").exists(), "{path:?}");
    }
}

#[test]
fn strangers_in_our_directory_stay_and_keep_it() {
    let parent = parent();
    let precious = parent.path().join("precious");
    fs::write(&precious, b"precious").unwrap();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let path = killed(work);
    fs::write(path.join("notes.txt"), b"mine").unwrap();
    fs::create_dir(path.join("victim-000002")).unwrap();
    symlink(&precious, path.join("victim-000003")).unwrap();
    let swept = swept_once_free(parent.path());
    assert!(matches!(&swept[..], [Swept::Left { .. }]), "{swept:?}");
    let mut left: Vec<String> = fs::read_dir(&path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    // Our files went; the owner file stays, so that the next sweep tries again.
    assert_eq!(
        left,
        ["notes.txt", "owner", "victim-000002", "victim-000003"]
    );
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    fs::remove_file(path.join("notes.txt")).unwrap();
    fs::remove_dir(path.join("victim-000002")).unwrap();
    fs::remove_file(path.join("victim-000003")).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Removed { .. }]
    ));
}

#[test]
fn links_are_never_followed() {
    let parent = parent();
    let elsewhere = tempfile::tempdir().unwrap();
    let work = WorkDir::create(elsewhere.path()).unwrap();
    fill(&work);
    let real = killed(work);
    // The directory itself is a link to a leftover of ours elsewhere.
    symlink(&real, parent.path().join(".trimbench-aaaaaaa1")).unwrap();
    // The owner file is a link to a valid one.
    let hostile = parent.path().join(".trimbench-aaaaaaa2");
    fs::create_dir(&hostile).unwrap();
    symlink(real.join("owner"), hostile.join("owner")).unwrap();
    fs::write(hostile.join("victim-000001"), b"precious").unwrap();
    let swept = swept_once_free(parent.path());
    assert_eq!(swept.len(), 2);
    assert!(
        swept.iter().all(|one| matches!(one, Swept::Left { .. })),
        "{swept:?}"
    );
    assert!(real.join("victim-000001").exists() && hostile.join("victim-000001").exists());
}

#[test]
fn what_others_may_write_to_is_left() {
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let path = killed(work);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Left { .. }]
    ));
    assert!(path.join("victim-000001").exists());
}

#[test]
fn another_users_is_left() {
    if testkit::gate::lacks(&[testkit::gate::Need::Root]) {
        return;
    }
    let parent = parent();
    let work = WorkDir::create(parent.path()).unwrap();
    fill(&work);
    let path = killed(work);
    std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
    assert!(matches!(
        &swept_once_free(parent.path())[..],
        [Swept::Left { .. }]
    ));
    assert!(path.join("victim-000001").exists());
}

#[test]
fn a_missing_parent_is_named() {
    let error = WorkDir::create("/no/such").unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
    assert!(sweep("/no/such").is_err());
}

#[test]
fn makers_and_sweepers_race_without_harm() {
    let parent = parent();
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..200 {
                    sweep(parent.path()).unwrap();
                }
            });
        }
        for _ in 0..2 {
            threads.spawn(|| {
                for _ in 0..200 {
                    let work = WorkDir::create(parent.path()).unwrap();
                    work.create_file(Name::Victim(1), Caching::Buffered)
                        .unwrap();
                    fs::remove_file(work.path_of(Name::Victim(1))).unwrap();
                    work.remove().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn what_is_disowned_holds_no_block_any_more() {
    let parent = parent();
    let open = OwnedFd::from(fs::File::open(parent.path()).unwrap());
    let mut held = OwnedDirectory::create(&open, parent.path(), ".held-").unwrap();
    let directory = parent.path().join(held.name());
    let is_any_open = || {
        let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
        all.filter_map(|fd| fs::read_link(fd.path()).ok())
            .any(|file| file.parent() == Some(&directory))
    };
    assert!(is_any_open());
    held.disown().unwrap();
    assert!(!is_any_open());
    held.remove(&open).unwrap();
}

#[test]
fn one_that_was_killed_before_its_owner_file_had_its_name_is_gone() {
    let parent = parent();
    let open = OwnedFd::from(fs::File::open(parent.path()).unwrap());
    let left = parent.path().join(".held-aaaaaaaa");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("owner.new"), "").unwrap();
    assert!(matches!(
        OwnedDirectory::find(&open, ".held-aaaaaaaa"),
        Found::Gone
    ));
    assert!(!left.exists());
    // Beside anything else it stays.
    fs::create_dir(&left).unwrap();
    fs::write(left.join("owner.new"), "").unwrap();
    fs::write(left.join("data"), "").unwrap();
    let found = OwnedDirectory::find(&open, ".held-aaaaaaaa");
    assert!(matches!(found, Found::Left(_)), "{found:?}");
    assert!(left.join("owner.new").exists() && left.join("data").exists());
    fs::remove_file(left.join("data")).unwrap();
    // Nor is one taken away that somebody is writing.
    let writing = fs::File::open(left.join("owner.new")).unwrap();
    rustix::fs::flock(&writing, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let found = OwnedDirectory::find(&open, ".held-aaaaaaaa");
    assert!(matches!(found, Found::Left(_)), "{found:?}");
}
