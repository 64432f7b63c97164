//! The drives, taken down when dropped.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Down, Lab, Launcher, Spec};
use linux::loop_device::Partitions;

pub(crate) const SERVE: &str = "--serve";
const NAME: &str = "bench";

pub(crate) trait Contestant {
    fn name(&self) -> &'static str;
    fn device(&self) -> &Path;
}

/// A simulated drive that costs nothing, served by this program.
#[derive(Debug)]
pub(crate) struct Ours {
    lab: Lab,
    root: tempfile::TempDir,
    device: PathBuf,
}

impl Ours {
    pub(crate) fn up(bytes: u64) -> Result<Ours, Box<dyn Error>> {
        let card = ssd::profiles::by_name("ideal").ok_or("there is no profile `ideal`")?;
        let root = tempfile::Builder::new().prefix("tb-bench-").tempdir()?;
        // From here on Drop takes down whatever there is.
        let mut ours = Ours {
            lab: Lab::at(root.path()),
            root,
            device: PathBuf::new(),
        };
        let launcher = Launcher {
            program: std::env::current_exe()?,
            arguments: vec![SERVE.into()],
        };
        let info = ours.lab.up(&Spec::new(NAME, card, bytes), &launcher)?;
        ours.device = info.device.ok_or("the drive has no loop device")?;
        Ok(ours)
    }
}

impl Contestant for Ours {
    fn name(&self) -> &'static str {
        "lab ideal"
    }

    fn device(&self) -> &Path {
        &self.device
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if let Err(errors) = self.lab.down_all(Down::ByForce) {
            eprintln!("{}: {errors:?}", self.root.path().display());
        }
    }
}

/// nbdkit's memory plugin, as a file by nbdfuse, under a loop device.
#[derive(Debug)]
pub(crate) struct Nbdkit {
    dir: tempfile::TempDir,
    nbdfuse: Child,
    device: Option<PathBuf>,
}

impl Nbdkit {
    pub(crate) fn up(bytes: u64) -> Result<Nbdkit, String> {
        let told = |error: std::io::Error| error.to_string();
        for program in ["nbdkit", "nbdfuse"] {
            let asked = Command::new(program).arg("--version").output();
            asked.map_err(|error| format!("can't start {program}: {error}"))?;
        }
        let dir = tempfile::Builder::new().prefix("tb-bench-").tempdir();
        let dir = dir.map_err(told)?;
        let file = dir.path().join("disk");
        // Ours has this priority, too.
        let nbdfuse = Command::new("nice")
            .args(["-n", "-20", "nbdfuse"])
            .arg(&file)
            .args(["[", "nbdkit", "memory", &bytes.to_string(), "]"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(told)?;
        let mut theirs = Nbdkit {
            dir,
            nbdfuse,
            device: None,
        };
        let begin = Instant::now();
        while std::fs::metadata(&file).map_or(0, |of| of.len()) != bytes {
            if begin.elapsed() > Duration::from_secs(10) {
                return Err("nbdfuse makes no file".to_owned());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let attached = linux::loop_device::attach(&file, 0, Partitions::Ignored);
        theirs.device = Some(attached.map_err(|error| format!("no loop device: {error}"))?);
        Ok(theirs)
    }
}

impl Contestant for Nbdkit {
    fn name(&self) -> &'static str {
        "nbdkit memory"
    }

    fn device(&self) -> &Path {
        self.device.as_deref().unwrap_or(Path::new("/dev/null"))
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        if let Some(device) = &self.device
            && let Err(error) = linux::loop_device::detach(device)
        {
            eprintln!("{} is still attached: {error}", device.display());
        }
        // The kernel may hold the file a moment longer.
        for _ in 0..100 {
            let unmounted = Command::new("umount")
                .arg(self.dir.path())
                .stderr(Stdio::null())
                .status();
            if unmounted.is_ok_and(|status| status.success()) {
                let _ = self.nbdfuse.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
        eprintln!("{} may still be mounted", self.dir.path().display());
    }
}
