//! File systems on loop devices, for tests that need one of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A process that another test starts holds our files between its fork and its exec.
const PATIENCE: Duration = Duration::from_secs(5);

/// A new file system on a loop device over a file in memory; unmounted and
/// detached when dropped.
#[derive(Debug)]
pub(crate) struct LoopFs {
    device: String,
    directory: tempfile::TempDir,
}

impl LoopFs {
    /// `None`, saying why, where this machine or user can't; then the test is
    /// skipped, and fails where the environment has `CI`.
    pub(crate) fn new(kind: &str, options: &str) -> Option<LoopFs> {
        match LoopFs::try_new(kind, options) {
            Ok(made) => Some(made),
            Err(why) => {
                assert!(
                    std::env::var_os("CI").is_none(),
                    "{kind} on a loop device: {why}"
                );
                println!("skipped: {kind} on a loop device: {why}");
                None
            }
        }
    }

    fn try_new(kind: &str, options: &str) -> Result<LoopFs, String> {
        let directory = tempfile::tempdir_in("/dev/shm").map_err(|error| error.to_string())?;
        let image = directory.path().join("image");
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(1 << 30).map_err(|error| error.to_string())?;
        let force = if kind == "ext4" { "-F" } else { "-f" };
        run(Command::new(format!("mkfs.{kind}"))
            .args(["-q", force])
            .arg(&image))?;
        let mount_point = directory.path().join("mount");
        std::fs::create_dir(&mount_point).map_err(|error| error.to_string())?;
        let device = run(Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image))?;
        let mounted = run(Command::new("mount")
            .args(["-o", options, &device])
            .arg(&mount_point));
        if let Err(why) = mounted {
            run(Command::new("losetup").args(["--detach", &device]))?;
            return Err(why);
        }
        Ok(LoopFs { device, directory })
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    /// Discards done by the device, and bytes they covered: fields 12 and 14
    /// of its statistics (Documentation/block/stat.rst).
    #[allow(dead_code, reason = "not every test asks")]
    pub(crate) fn discards(&self) -> (u64, u64) {
        let name = Path::new(&self.device).file_name().expect("a name");
        let stat = Path::new("/sys/block").join(name).join("stat");
        let text = std::fs::read_to_string(stat).expect("statistics");
        let field = |n: usize| -> u64 {
            let field = text.split_whitespace().nth(n - 1);
            field.expect("field").parse().expect("number")
        };
        (field(12), field(14) * 512)
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        let unmounted = unmount(&self.path());
        if unmounted.is_err() {
            // What is still mounted is somebody's to look at, not ours to empty.
            self.directory.disable_cleanup(true);
        }
        // Tried whatever came of the first.
        let detached = run(Command::new("losetup").args(["--detach", &self.device]));
        // What holds the file system after a test's end is a bug of what was tested.
        if !std::thread::panicking() {
            unmounted
                .and(detached.map(drop))
                .expect("nothing is in use any more");
        }
    }
}

/// Tries for a while.
fn unmount(path: &Path) -> Result<(), String> {
    let began = Instant::now();
    loop {
        match run(Command::new("umount").arg(path)) {
            Ok(_) => return Ok(()),
            Err(why) if began.elapsed() >= PATIENCE => return Err(why),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{:?}: {}", command.get_program(), said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
