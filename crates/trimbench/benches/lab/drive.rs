//! A drive of a laboratory of the benchmark's own, gone when it is over.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use record::RecordReader;
use record::RunRecord;
use serde_json::Value;
use ssd::Card;

/// The result of a step that can fail, with the reason in words.
pub type Fallible<T> = Result<T, Box<dyn Error>>;

const NAME: &str = "bench";

/// The drive's commands of one kind since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Commands.
    pub commands: u64,
    /// The time for them in seconds of real time. Discards come one by one, so theirs is the time
    /// for which the drive was busy with them.
    pub busy_s: f64,
}

/// A drive.
pub struct Drive {
    home: PathBuf,
    /// Its loop device.
    pub device: PathBuf,
    /// Where its file system is mounted, or can be.
    pub mount: PathBuf,
}

impl Drive {
    /// `trimbench lab up` with these options. `fs`: a file system to make, and
    /// its mount's options.
    pub fn up(options: &str, fs: Option<(&str, &str)>) -> Fallible<Drive> {
        let home = PathBuf::from(format!("/tmp/tb-benchlab-{}", std::process::id()));
        let mut drive = Drive {
            mount: home.with_extension("mnt"),
            home,
            device: PathBuf::new(),
        };
        let mut command = drive.program();
        command.args(["lab", "up", NAME]).args(options.split(' '));
        if let Some((name, options)) = fs {
            command.args(["--fs", name, "-o", options, "--mount"]);
            command.arg(&drive.mount);
        }
        drive.device = ended(&mut command)?.trim().into();
        Ok(drive)
    }

    /// `trimbench run` on it: the record, and the verdict as measured.
    pub fn run(&self, options: &str) -> Fallible<(RunRecord, Value)> {
        let (record, verdict) = (self.file("record"), self.file("verdict"));
        let mut command = self.program();
        command.args(["run", "--quiet"]).args(options.split(' '));
        command.arg("--output").arg(&record);
        command.arg("--json").arg(&verdict);
        ended(command.arg(&self.mount))?;
        let told = serde_json::from_str(&fs::read_to_string(&verdict)?)?;
        let read = RecordReader::read(File::open(&record)?)?;
        fs::remove_file(record)?;
        fs::remove_file(verdict)?;
        Ok((read, told))
    }

    /// `trimbench fit` on it, on the file system or on the raw device: what it printed,
    /// and the device card.
    pub fn fit(&self, options: &str, raw: bool) -> Fallible<(String, Card)> {
        let card = self.file("toml");
        let mut command = self.program();
        command.arg("fit").args(options.split(' '));
        match raw {
            true => command
                .arg("--device")
                .arg(&self.device)
                .arg("--destroy-data"),
            false => command.arg(&self.mount),
        };
        let text = ended(command.arg("--output").arg(&card))?;
        let read = fs::read_to_string(&card)?.parse()?;
        fs::remove_file(card)?;
        Ok((text, read))
    }

    /// Changes its figures, e.g. `a=0`.
    pub fn set(&self, changes: &[&str]) -> Fallible<()> {
        let mut command = self.program();
        ended(command.args(["lab", "set", NAME]).args(changes)).map(|_| ())
    }

    /// Returns the drive's commands of a kind since it was made.
    pub fn done(&self, kind: &str) -> Fallible<Done> {
        let mut command = self.program();
        let text = ended(command.args(["lab", "stats", NAME, "--json"]))?;
        let all: Value = serde_json::from_str(&text)?;
        let kinds = all["stats"]["kinds"].as_array().cloned();
        let of = kinds.into_iter().flatten().find(|of| of["kind"] == kind);
        let of = of.ok_or("the drive tells nothing of that kind")?;
        let commands = of["commands"].as_u64().unwrap_or(0);
        let mean_us = of["mean_us"].as_f64().unwrap_or(0.0);
        Ok(Done {
            commands,
            busy_s: commands as f64 * mean_us / 1e6,
        })
    }

    /// Seconds from `began` until the last discard was done, when none has come
    /// for two.
    pub fn quiet_since(&self, began: Instant) -> Fallible<f64> {
        let name = self.device.file_name().ok_or("a device has a name")?;
        let file = Path::new("/sys/block").join(name).join("stat");
        let mut last = (String::new(), Instant::now());
        loop {
            let now = fs::read_to_string(&file)?;
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > Duration::from_secs(2) {
                return Ok(last.1.duration_since(began).as_secs_f64());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Mounts the file system that the caller made on it.
    pub fn mount(&self, options: &str) -> Fallible<()> {
        fs::create_dir_all(&self.mount)?;
        let mut command = Command::new("mount");
        command.args(["-o", options]).arg(&self.device);
        ended(command.arg(&self.mount)).map(|_| ())
    }

    /// Unmounts that file system, and removes the directory.
    pub fn unmount(&self) -> Fallible<()> {
        ended(Command::new("umount").arg(&self.mount))?;
        Ok(fs::remove_dir(&self.mount)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.with_extension(name)
    }

    fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trimbench"));
        command.env("TRIMBENCH_LAB_DIR", &self.home);
        command
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        let mut command = self.program();
        if let Err(error) = ended(command.args(["lab", "down", "--all", "--force"])) {
            eprintln!("{error}");
        }
        let _ = fs::remove_dir(&self.mount);
        let _ = fs::remove_dir(&self.home);
    }
}

/// Runs a command, which must succeed; what it printed.
pub fn ended(command: &mut Command) -> Fallible<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", said.trim()).into())
}

/// How long something takes, in seconds.
pub fn timed<T>(what: impl FnOnce() -> Fallible<T>) -> Fallible<f64> {
    let began = Instant::now();
    what()?;
    Ok(began.elapsed().as_secs_f64())
}
