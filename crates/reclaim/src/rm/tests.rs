use std::fs;
use std::path::Path;
use std::time::Duration;

use pace::{DebtMode, Policy};

use super::places::Parents;
use super::removal::{PauseByDevice, close, entry, give_back};
use super::trash::Trash;
use super::*;
use crate::throttle::{CanaryFile, Pacing, Stack};
use crate::{Question, Reply};

/// Volumes on which nothing is paced.
fn unpaced() -> Volumes {
    Volumes::new(Pacing::new(Policy::Burst))
}

/// Volumes that pace small files, too, on the file system of a directory, whatever it is.
fn paced(place: &Path) -> Volumes {
    let on = fs::File::open(place).unwrap();
    let mut volumes = Volumes::new(Pacing {
        canary: CanaryFile::Without,
        ..Pacing::new(Policy::Fixed {
            chunk: 1 << 20,
            sleep: Duration::ZERO,
        })
    });
    let stack = Stack {
        mode: DebtMode::Deferred,
        commit: storage::Commit::Within,
        sources: Vec::new(),
        ..Stack::at(on.as_fd()).unwrap()
    };
    volumes.assume(on.as_fd(), stack);
    volumes
}

/// A listener that stops the removal after so many reports of progress, and only once.
fn enough(mut after: u32) -> impl FnMut(Event<'_>) -> Reply {
    move |event| {
        let Event::Progress(_) = event else {
            return Reply::Yes;
        };
        let is_now = after == 0;
        after = after.wrapping_sub(1);
        match is_now {
            true => Reply::Stop,
            false => Reply::Yes,
        }
    }
}

/// A listener that answers yes to the first question, and stops the removal at the second.
fn yes_and_enough() -> impl FnMut(Event<'_>) -> Reply {
    let mut asked = 0;
    move |event| {
        asked += u32::from(matches!(event, Event::Question { .. }));
        match asked {
            0 | 1 => Reply::Yes,
            _ => Reply::Stop,
        }
    }
}

/// Records failures and questions, and answers no to every question.
#[derive(Default)]
struct Told {
    failed: Vec<String>,
    asked: Vec<Question>,
}

impl Told {
    fn hear(&mut self, event: Event<'_>) -> Reply {
        match event {
            Event::Failed(path, problem) => self.failed.push(problem.message(path)),
            Event::Question { what, .. } => {
                self.asked.push(what);
                return Reply::No;
            }
            _ => {}
        }
        Reply::Yes
    }
}

const OPTIONS: Options = Options {
    recursive: true,
    force: false,
    empty_directories: false,
    one_file_system: false,
    preserve_root: PreserveRoot::Yes,
    asking: Asking::Protected,
    trash: true,
};

#[test]
fn a_forecast_counts_a_file_of_several_names_once() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("t")).unwrap();
    for (name, links) in [("t/a", &["t/b"][..]), ("out", &["t/c", "t/d"])] {
        fs::write(at(name), vec![1; 1 << 20]).unwrap();
        fs::File::open(at(name)).unwrap().sync_all().unwrap();
        for link in links {
            fs::hard_link(at(name), at(link)).unwrap();
        }
    }
    let frees = |names: &[&str]| -> Vec<(u64, u64, u64)> {
        let paths: Vec<_> = names.iter().map(|name| at(name)).collect();
        let (all, failures) =
            intend(&paths, &OPTIONS, &mut unpaced(), &mut |_| Reply::Yes).unwrap();
        assert_eq!(failures, 0);
        let mib = |one: &Intention| (one.bytes >> 20, one.stays.files, one.stays.bytes >> 20);
        all.iter().map(mib).collect()
    };
    // MiB that come free, files that stay, and their MiB.
    assert_eq!(frees(&["t"]), [(1, 1, 1)]);
    assert_eq!(frees(&["t", "out"]), [(1, 1, 1), (1, 0, 0)]);
    assert_eq!(frees(&["t/a", "t/b"]), [(0, 1, 1), (1, 0, 0)]);
}

#[test]
fn whoever_stops_it_while_it_looks_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let tree = place.path().join("t");
    fs::create_dir(&tree).unwrap();
    for number in 0..3 {
        fs::write(tree.join(number.to_string()), "").unwrap();
    }
    // While it looks at the argument, when it has, and before it renames anything.
    for after in 0..3 {
        let outcome = remove(
            std::slice::from_ref(&tree),
            &OPTIONS,
            &mut unpaced(),
            &mut enough(after),
        );
        let stopped = outcome.stopped.is_some_and(|stopped| stopped.interrupted);
        assert!(stopped, "{after}");
        assert_eq!((outcome.names, outcome.left.len()), (0, 0));
        assert_eq!(fs::read_dir(&tree).unwrap().count(), 3);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}

#[test]
fn what_was_swapped_in_and_cannot_go_back_is_never_removed() {
    let place = tempfile::tempdir().unwrap();
    let (path, theirs) = (place.path().join("t"), place.path().join("t/theirs"));
    let mut parents = Parents::default();
    fs::write(&path, "").unwrap();
    let argument = parents.look(&path, &OPTIONS).unwrap();
    // Between the look and the taking, and between the taking and the giving back.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(&theirs, "precious").unwrap();
    let parent = parents.get(argument.parent);
    let entries = vec![entry(1, &argument, &OPTIONS)];
    let trash = Trash::create(&parent.fd, &parent.path, entries).unwrap();
    let kept = trash.path().join("kept-000001/theirs");
    trash.rename_in(1, &argument.name).unwrap();
    assert!(!trash.is_as_seen(1, argument.is_directory()));
    fs::write(&path, "").unwrap();
    let mut told = Told::default();
    let failures = give_back(&trash, 1, &argument.name, &path, &mut |event| {
        told.hear(event)
    });
    assert_eq!(failures, 1);
    assert!(told.failed[0].contains("File exists"), "{:?}", told.failed);

    // Neither now nor later is there anything to go on with.
    let left = close(
        [trash],
        &Outcome::default(),
        false,
        &PauseByDevice::new(),
        &mut |event| told.hear(event),
    );
    assert_eq!(left, [""; 0].map(PathBuf::from));
    let place = crate::Where::Directory(place.path().to_owned());
    let (outcome, count) =
        crate::resume(&place, &mut unpaced(), &mut |event| told.hear(event)).unwrap();
    assert_eq!((count, outcome.names, outcome.left.len()), (1, 0, 0));
    assert_eq!(fs::read_to_string(kept).unwrap(), "precious");
}

#[test]
fn a_small_file_is_freed_once_however_often_it_is_named() {
    let place = tempfile::tempdir().unwrap();
    let named = |number: u32| place.path().join(number.to_string());
    let mut paths: Vec<PathBuf> = (0..600).map(named).collect();
    for path in &paths {
        fs::write(path, [1; 100]).unwrap();
        fs::File::open(path).unwrap().sync_all().unwrap();
    }
    paths.insert(300, place.path().join("vanished"));
    // One of them twice.
    paths.insert(301, paths[299].clone());
    let mut told = Told::default();
    let outcome = remove(&paths, &OPTIONS, &mut paced(place.path()), &mut |event| {
        told.hear(event)
    });
    // As for rm, what is named twice isn't there any more.
    assert_eq!((outcome.names, outcome.failures), (600, 2));
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    let freed = outcome.summary[0].freed;
    assert!(
        freed > 0 && freed.is_multiple_of(600),
        "{freed} bytes were freed"
    );
}

#[test]
fn who_says_yes_to_one_sees_it_go_before_the_next_question() {
    let place = tempfile::tempdir().unwrap();
    let paths = ["one", "two"].map(|name| place.path().join(name));
    for path in &paths {
        fs::write(path, [1; 100]).unwrap();
    }
    let options = Options {
        asking: Asking::Always,
        ..OPTIONS
    };
    let outcome = remove(
        &paths,
        &options,
        &mut paced(place.path()),
        &mut yes_and_enough(),
    );
    assert!(outcome.stopped.is_some_and(|stopped| stopped.interrupted));
    assert_eq!(paths.map(|path| path.exists()), [false, true]);
}

#[test]
fn what_was_swapped_in_right_before_a_kill_is_given_back() {
    let place = tempfile::tempdir().unwrap();
    let (path, theirs) = (place.path().join("t"), place.path().join("t/theirs"));
    let mut parents = Parents::default();
    fs::write(&path, "").unwrap();
    let argument = parents.look(&path, &OPTIONS).unwrap();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(&theirs, "precious").unwrap();
    let parent = parents.get(argument.parent);
    let entries = vec![entry(1, &argument, &OPTIONS)];
    let trash = Trash::create(&parent.fd, &parent.path, entries).unwrap();
    trash.rename_in(1, &argument.name).unwrap();
    drop(trash);

    let place = crate::Where::Directory(place.path().to_owned());
    let mut told = Told::default();
    let (outcome, count) =
        crate::resume(&place, &mut unpaced(), &mut |event| told.hear(event)).unwrap();
    assert_eq!((count, outcome.names, outcome.left.len()), (1, 0, 0));
    assert_eq!(fs::read_to_string(theirs).unwrap(), "precious");
}

#[test]
fn an_empty_directory_is_asked_about_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("d");
    fs::create_dir(&path).unwrap();
    for recursive in [false, true] {
        let options = Options {
            recursive,
            empty_directories: true,
            asking: Asking::Always,
            ..OPTIONS
        };
        let mut told = Told::default();
        remove(
            std::slice::from_ref(&path),
            &options,
            &mut unpaced(),
            &mut |event| told.hear(event),
        );
        assert_eq!(
            told.asked,
            [Question::Remove("directory")],
            "recursive: {recursive}"
        );
        assert!(path.exists());
    }
}

#[test]
fn a_refusal_says_that_nothing_was_removed_unless_something_was() {
    let ms = Duration::from_millis;
    let refused = ReclaimError::Refused(pace::Refusal::latency(ms(4), ms(9)));
    let why = |begun| Stopped::new(&refused, begun).why;
    assert!(
        why(false).ends_with("; nothing was removed"),
        "{}",
        why(false)
    );
    assert_eq!(why(true), refused.to_string());
    let interrupted = Stopped::new(&ReclaimError::Interrupted, false);
    assert!(!interrupted.why.contains("nothing was removed"));
}
