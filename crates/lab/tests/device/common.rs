//! Drives for tests, gone when the test is over, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lab::{Down, Info, Lab, Launcher, Spec};

use crate::gate::{self, Need};

const PREFIX: &str = "/tmp/tb-lab-";

/// Whether the machine can't do this; see [`gate::lacks`].
#[must_use]
pub(crate) fn cannot(programs: &[&'static str]) -> bool {
    let drives = [
        Need::Root,
        Need::File("/dev/fuse"),
        Need::File("/dev/loop-control"),
    ];
    let tools = programs.iter().map(|program| Need::Tool(program));
    gate::lacks(&drives.into_iter().chain(tools).collect::<Vec<_>>())
}

/// How long a check goes on: so long in `make test`, an hour in `make soak`, or
/// as many seconds as `TRIMBENCH_SOAK_SECONDS` says.
pub(crate) fn soak_or(short: Duration) -> Duration {
    if !gate::soak() {
        return short;
    }
    let given = std::env::var("TRIMBENCH_SOAK_SECONDS").ok();
    Duration::from_secs(given.map_or(3600, |text| text.parse().unwrap()))
}

/// A laboratory with one drive.
pub(crate) struct Bench {
    pub(crate) lab: Lab,
    root: PathBuf,
    pub(crate) info: Info,
}

pub(crate) const NAME: &str = "a";

impl Bench {
    /// A drive like a shipped card, with figures changed and whatever `edit` does.
    pub(crate) fn new(
        profile: &str,
        changes: &[&str],
        mib: u64,
        edit: impl FnOnce(&mut Spec),
    ) -> Bench {
        Bench::launched(&launcher(), profile, changes, mib, edit)
    }

    /// The same, with its server started so.
    pub(crate) fn launched(
        launcher: &Launcher,
        profile: &str,
        changes: &[&str],
        mib: u64,
        edit: impl FnOnce(&mut Spec),
    ) -> Bench {
        sweep();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = PathBuf::from(format!("{PREFIX}{}-{number}", std::process::id()));
        let mut card = ssd::profiles::by_name(profile).unwrap().clone();
        for change in changes {
            card = card.with(change).unwrap();
        }
        let mut spec = Spec::new(NAME, &card, mib << 20);
        edit(&mut spec);
        // From here on Drop takes down whatever there is.
        let mut new = Bench {
            lab: Lab::at(&root),
            root,
            info: Info {
                spec: spec.clone(),
                device: None,
                mounts: Vec::new(),
                server: None,
                trip: None,
            },
        };
        new.info = new.lab.up(&spec, launcher).unwrap();
        new
    }

    pub(crate) fn device(&self) -> &Path {
        self.info.device.as_deref().unwrap()
    }

    pub(crate) fn mount(&self) -> &Path {
        &self.info.mounts[0]
    }

    /// A place to mount a drive on, that `up` makes.
    pub(crate) fn mount_point() -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        PathBuf::from(format!("/tmp/tb-labmnt-{}-{number}", std::process::id()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        take_down(&self.root);
    }
}

fn take_down(root: &Path) {
    if let Err(errors) = Lab::at(root).down_all(Down::ByForce) {
        errors.iter().for_each(|error| eprintln!("{error}"));
    }
    let _ = fs::remove_dir(root);
}

/// Takes down what killed test runs left.
fn sweep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let path = entry.path();
            let text = path.to_string_lossy();
            let pid = text.strip_prefix(PREFIX).and_then(|r| r.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                take_down(&path);
            }
        }
    });
}

/// This test program again, as a server: see `serve_a_drive_when_started_for_it`.
pub(crate) fn launcher() -> Launcher {
    Launcher {
        program: std::env::current_exe().unwrap(),
        arguments: vec![
            "--exact".into(),
            "--nocapture".into(),
            "serve_a_drive_when_started_for_it".into(),
        ],
    }
}

/// Runs a command that must succeed, and gives its output.
pub(crate) fn must(program: &str, arguments: &[&str]) -> String {
    let output = run(program, arguments);
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}
