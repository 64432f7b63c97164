//! The second names of a directory in memory: which files get one, and which are freed.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use super::names::names;
use super::scan::{Rules, scan};
use super::*;

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn written(at: &Path, bytes: usize) {
    fs::write(at, vec![7; bytes]).unwrap();
}

/// Scans a place once, as its finder does.
fn scanned(place: &Place) -> scan::Scanned {
    let stat = rustix::fs::fstat(place.directory()).unwrap();
    let rules = Rules {
        min_bytes: 64 << 10,
        owner: Some(stat.st_uid),
        device: stat.st_dev,
    };
    scan(place.directory(), place.keep(), &rules, &|| true)
}

#[test]
fn large_files_get_one_second_name_and_others_none() {
    let here = place();
    fs::create_dir(here.path().join("deep")).unwrap();
    written(&here.path().join("deep/large"), 100 << 10);
    written(&here.path().join("small"), 4 << 10);
    written(&here.path().join("paced.trash"), 100 << 10);
    std::os::unix::fs::symlink("deep/large", here.path().join("link")).unwrap();
    let place = Place::open(here.path(), &mut Vec::new()).unwrap();
    assert_eq!(scanned(&place).new_files, 1);
    assert_eq!(scanned(&place).new_files, 0, "it has one");
    let sums = place.names().sums();
    assert_eq!((sums.guarded_files, sums.waiting_files), (1, 0));
    fs::remove_file(here.path().join("deep/large")).unwrap();
    let sums = place.names().sums();
    assert_eq!((sums.guarded_files, sums.waiting_files), (0, 1));
    assert!(sums.waiting_bytes >= 100 << 10);
}

#[test]
fn a_second_guard_is_refused_there_and_below() {
    let here = place();
    let below = here.path().join("below");
    fs::create_dir(&below).unwrap();
    let first = Place::open(here.path(), &mut Vec::new()).unwrap();
    let again = Place::open(here.path(), &mut Vec::new()).unwrap_err();
    assert!(matches!(again, GuardError::Guarded { .. }), "{again}");
    let nested = Place::open(&below, &mut Vec::new()).unwrap_err();
    assert!(matches!(nested, GuardError::Nested { .. }), "{nested}");
    first.close();
    Place::open(&below, &mut Vec::new()).unwrap().close();
    assert_eq!(fs::read_dir(here.path()).unwrap().count(), 1);
}

#[test]
fn what_another_guard_guards_is_left_to_it() {
    let here = place();
    let below = here.path().join("below");
    fs::create_dir(&below).unwrap();
    written(&below.join("large"), 100 << 10);
    let inner = Place::open(&below, &mut Vec::new()).unwrap();
    let outer = Place::open(here.path(), &mut Vec::new()).unwrap();
    let found = scanned(&outer);
    assert_eq!((found.new_files, found.guarded.len()), (0, 1));
    assert_eq!(scanned(&inner).new_files, 1);
}

#[test]
fn a_name_that_the_guard_did_not_make_stays() {
    let here = place();
    let first = Place::open(here.path(), &mut Vec::new()).unwrap();
    let hidden = here
        .path()
        .join(place::hidden_in(first.directory())[0].clone());
    for strange in ["12x", "012", "note", "7"] {
        written(&hidden.join(strange), 10);
    }
    assert_eq!(
        names(first.hidden().as_fd()).orphans.len(),
        0,
        "7 isn't its inode"
    );
    first.close();
    for strange in ["12x", "012", "note", "7"] {
        assert!(hidden.join(strange).exists(), "{strange}");
    }
}

#[test]
fn an_order_is_taken_once_and_nonsense_never() {
    let here = place();
    let place = Place::open(here.path(), &mut Vec::new()).unwrap();
    let hidden = here
        .path()
        .join(place::hidden_in(place.directory())[0].clone());
    fs::write(hidden.join("order"), r#"{"slowdown":0.3}"#).unwrap();
    let request = control::take(place.hidden()).unwrap();
    assert_eq!(request.slowdown, Some(0.3));
    assert!(!request.stop && control::take(place.hidden()).is_none());
    for nonsense in ["", "{", r#"{"stop":"yes"}"#, r#"{"other":1}"#] {
        fs::write(hidden.join("order"), nonsense).unwrap();
        assert_eq!(control::take(place.hidden()), None, "{nonsense}");
        assert!(!control::is_waiting(place.hidden()));
    }
    place.close();
}

#[test]
fn the_oldest_file_waits_first_and_its_age_is_reported() {
    let here = place();
    written(&here.path().join("one"), 100 << 10);
    written(&here.path().join("two"), 100 << 10);
    let mut guard = Guard {
        places: vec![Place::open(here.path(), &mut Vec::new()).unwrap()],
        options: stop::options(),
        card: None,
        retries: HashMap::new(),
    };
    scanned(&guard.places[0]);
    let inode =
        |name| std::os::unix::fs::MetadataExt::ino(&fs::metadata(here.path().join(name)).unwrap());
    let (one, two) = (inode("one"), inode("two"));
    fs::remove_file(here.path().join("two")).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    fs::remove_file(here.path().join("one")).unwrap();
    let orphans = guard.places[0].names().orphans;
    let order: Vec<u64> = guard
        .due(0, orphans.clone())
        .iter()
        .map(|o| o.inode)
        .collect();
    assert_eq!(order, [two, one]);
    // A file that another process has open is tried later.
    let at = Instant::now() + Duration::from_secs(60);
    guard.retries.insert(
        (0, two),
        Retry {
            at,
            wait: FIRST_RETRY,
        },
    );
    let order: Vec<u64> = guard.due(0, orphans).iter().map(|o| o.inode).collect();
    assert_eq!(order, [one]);
    assert_eq!(guard.places[0].names().sums().waiting_files, 2);
}
