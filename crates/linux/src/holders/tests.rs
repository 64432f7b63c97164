use super::*;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};
use rustix::thread::UnshareFlags;
use testkit::gate::{Need, lacks};

/// Mounts of one test make holders of another's file unknown.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Searches that can take their time: as the kernel lists namespaces, and as before Linux 6.12,
/// where every process can be looked into.
fn searches() -> Vec<Search> {
    let is_readable = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).is_ok();
    let older = crate::tasks::processes().iter().all(is_readable);
    if !older {
        eprintln!("skipped: the way before Linux 6.12, for a process can't be looked into");
    }
    let ways = [true, false].into_iter().take(1 + usize::from(older));
    ways.map(|lists| {
        let mut search = Search::default();
        search.looks.lists = lists;
        search.looks.at_most = Duration::from_secs(600);
        search
    })
    .collect()
}

/// A file on a file system in memory, and a place to mount it at.
struct Place {
    directory: tempfile::TempDir,
    /// The file's name, which no other test's file has.
    name: String,
}

impl Place {
    fn new() -> Option<Place> {
        let needs = [Need::Root, Need::Tool("unshare")];
        if lacks(&needs) || blind().is_some() {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().file_name().unwrap().to_string_lossy();
        let name = format!("file{name}");
        std::fs::write(directory.path().join(&name), "x").unwrap();
        std::fs::write(directory.path().join("on"), "").unwrap();
        Some(Place { directory, name })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path(&self.name)
    }

    /// The holders, once the namespaces of tests that ended are gone: they go a moment later.
    fn holders_become(&self, search: &mut Search, expected: &Holders) -> Holders {
        for _ in 0..100 {
            if self.holders(search) == *expected {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.holders(search)
    }

    fn holders(&self, search: &mut Search) -> Holders {
        let directory = File::open(self.directory.path()).unwrap();
        let mut options = File::options();
        let file = options.read(true).write(true).open(self.file()).unwrap();
        search.holders(&Candidate {
            file: &file,
            name: OsStr::new(&self.name),
            directory: directory.as_fd(),
        })
    }
}

/// Runs `then` while a thread with mounts of its own has made these.
fn while_mounted<T>(make: impl FnOnce() + Send, then: impl FnOnce() -> T) -> T {
    let (ends, ended) = mpsc::channel::<()>();
    let (ready, is_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // SAFETY: it has no part in the table of descriptors.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", private).unwrap();
            make();
            ready.send(()).unwrap();
            let _ = ended.recv();
        });
        is_ready.recv().unwrap();
        let result = then();
        drop(ends);
        result
    })
}

#[test]
fn a_mount_of_another_thread_is_found_also_when_the_file_has_no_name_any_more() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    for mut search in searches() {
        assert_eq!(place.holders(&mut search), Holders::Nobody);
        let mounted = Holders::Held(Holder::Mount(place.path("on")));
        while_mounted(
            || mount_bind(place.file(), place.path("on")).unwrap(),
            || {
                assert_eq!(place.holders_become(&mut search, &mounted), mounted);
                // Renamed since, and removed.
                std::fs::rename(place.file(), place.path("new")).unwrap();
                let open = || {
                    let mut options = File::options();
                    options.read(true).write(true).open(place.path("new"))
                };
                let file = open().unwrap();
                let directory = File::open(place.directory.path()).unwrap();
                let mut candidate = Candidate {
                    file: &file,
                    name: OsStr::new("new"),
                    directory: directory.as_fd(),
                };
                assert_eq!(search.holders(&candidate), mounted);
                std::fs::remove_file(place.path("new")).unwrap();
                candidate.name = OsStr::new("whatever");
                assert_eq!(search.holders(&candidate), mounted);
                std::fs::write(place.file(), "x").unwrap();
            },
        );
        assert_eq!(place.holders(&mut search), Holders::Nobody);
    }
}

#[test]
fn a_mount_that_something_hides_is_unknown_if_it_may_be_the_file() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    std::fs::create_dir(place.path("over")).unwrap();
    for (name, on) in [(&*place.name, "over/on"), ("other", "over/of")] {
        std::fs::write(place.path(name), "x").unwrap();
        std::fs::write(place.path(on), "").unwrap();
    }
    let hides = |file: &str, on: &str| {
        mount_bind(place.path(file), place.path(on)).unwrap();
        mount(
            "none",
            place.path("over"),
            "tmpfs",
            MountFlags::empty(),
            None,
        )
        .unwrap();
    };
    for mut search in searches() {
        let hidden = Holders::Unknown(Unknown::Hidden(place.path("over/on")));
        let holders = while_mounted(
            || hides(&place.name, "over/on"),
            || place.holders_become(&mut search, &hidden),
        );
        assert_eq!(holders, hidden);
        let holders = while_mounted(
            || hides("other", "over/of"),
            || place.holders_become(&mut search, &Holders::Nobody),
        );
        assert_eq!(holders, Holders::Nobody);
    }
}

#[test]
fn a_namespace_without_a_process_is_looked_into() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    let mut child = Command::new("unshare")
        .args(["--mount", "sh", "-c"])
        .arg("mount --make-rprivate / && mount --bind \"$0\" \"$1\" && echo && exec sleep 600")
        .args([place.file(), place.path("on")])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    let kept = File::open(format!("/proc/{}/ns/mnt", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    for mut search in searches() {
        let mounted = Holders::Held(Holder::Mount(place.path("on")));
        assert_eq!(place.holders_become(&mut search, &mounted), mounted);
    }
    drop(kept);
    for mut search in searches() {
        let holders = place.holders_become(&mut search, &Holders::Nobody);
        assert_eq!(holders, Holders::Nobody);
    }
}

#[test]
fn mounts_that_were_seen_are_not_examined_again() {
    let _alone = alone();
    const MANY: u64 = 3000;
    let Some(place) = Place::new() else { return };
    let mut search = searches().remove(0);
    let other = place.path("other");
    for path in (0..MANY).map(|number| place.path(&number.to_string())) {
        std::fs::write(path, "").unwrap();
    }
    std::fs::write(&other, "x").unwrap();
    let make = || {
        for number in 0..MANY {
            mount_bind(&other, place.path(&number.to_string())).unwrap();
        }
    };
    while_mounted(make, || {
        for _ in 0..5 {
            assert_eq!(place.holders(&mut search), Holders::Nobody);
        }
    });
    let examined = search.looks.examined;
    // Others of the machine come and go.
    assert!((MANY..2 * MANY).contains(&examined), "{examined}");
}

#[test]
fn beyond_its_time_a_search_gives_up_and_knows_nothing() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    for mut search in searches() {
        search.looks.at_most = Duration::ZERO;
        search.looks.used = Duration::from_secs(60);
        let unknown = Holders::Unknown(Unknown::TooMany);
        assert_eq!(place.holders(&mut search), unknown);
        assert!(search.looks.examined < 200, "{}", search.looks.examined);
    }
}

/// An overlay on a file system in memory; unmounted when dropped.
struct Overlay(PathBuf);

impl Overlay {
    fn new(at: PathBuf) -> Overlay {
        std::fs::create_dir(&at).unwrap();
        mount("none", &at, "tmpfs", MountFlags::empty(), None).unwrap();
        let made = Overlay(at);
        for name in ["lower", "upper/inner", "work", "merged"] {
            std::fs::create_dir_all(made.below(name)).unwrap();
        }
        for name in ["upper/inner/file", "lower/file"] {
            std::fs::write(made.below(name), "x").unwrap();
        }
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| made.below(name));
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let options = std::ffi::CString::new(options).unwrap();
        let none = MountFlags::empty();
        mount("overlay", made.below("merged"), "overlay", none, &*options).unwrap();
        made
    }

    fn below(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn holders(&self, search: &mut Search, directory: &str) -> Holders {
        let directory = self.below(directory);
        let file = File::options().write(true).open(directory.join("file"));
        let directory = File::open(directory).unwrap();
        search.holders(&Candidate {
            file: &file.unwrap(),
            name: OsStr::new("file"),
            directory: directory.as_fd(),
        })
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        for mounted in [self.below("merged"), self.0.clone()] {
            let _ = rustix::mount::unmount(mounted, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

#[test]
fn an_overlays_upper_directory_is_known_by_what_it_is() {
    let _alone = alone();
    let Some(place) = Place::new() else { return };
    for (number, mut search) in searches().into_iter().enumerate() {
        let overlay = Overlay::new(place.path(&number.to_string()));
        let inner = overlay.holders(&mut search, "upper/inner");
        assert_eq!(inner, Holders::Unknown(Unknown::Upper));
        assert_eq!(overlay.holders(&mut search, "lower"), Holders::Nobody);
        // Where its path leads nowhere, every file may be in it.
        std::fs::rename(overlay.below("upper"), overlay.below("moved")).unwrap();
        let mut new = searches().remove(number);
        let lost = Unknown::Overlay(overlay.below("merged"));
        let beside = overlay.holders(&mut new, "lower");
        assert_eq!(beside, Holders::Unknown(lost));
    }
}

#[test]
fn what_is_known_goes_before_what_is_not() {
    let none = || Ok(Found::default());
    let mounted = || {
        Ok(Found {
            mounted: Some("/x".into()),
            hidden: Some("/y".into()),
            ..Found::default()
        })
    };
    let hidden = || {
        Ok(Found {
            hidden: Some("/y".into()),
            ..Found::default()
        })
    };
    let no_lease = || Err(io::Error::from(Errno::INVAL));
    let held = |holder| Holders::Held(holder);
    let unknown = |unknown| Holders::Unknown(unknown);
    for (mounts, open, wanted) in [
        (none(), Ok(false), Holders::Nobody),
        (none(), Ok(true), held(Holder::Open)),
        (Err(Unknown::TooMany), Ok(true), held(Holder::Open)),
        (Err(Unknown::TooMany), Ok(false), unknown(Unknown::TooMany)),
        (mounted(), Ok(false), held(Holder::Mount("/x".into()))),
        (mounted(), no_lease(), held(Holder::Mount("/x".into()))),
        (hidden(), Ok(false), unknown(Unknown::Hidden("/y".into()))),
        (none(), no_lease(), unknown(Unknown::Lease(Errno::INVAL))),
    ] {
        assert_eq!(decide(mounts, open), wanted);
    }
}
