//! The timer that trims what is mounted with nodiscard.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use record::units::names::shown;
use record::units::percent_exact;

use crate::Error;

/// The name of the timer's unit.
pub const TIMER: &str = "trimbench-fstrim.timer";

/// The timer that `trimbench fstrim --install-timer` makes. It takes the place of the
/// distribution's timer, so it trims all that is mounted.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The directory of systemd's units.
    units: PathBuf,
    /// The arguments of `trimbench` that install it.
    pub words: [String; 4],
}

impl Timer {
    /// The timer below `etc`, with the goal of a slowdown of so much (0 to 1).
    pub fn new(etc: &std::path::Path, slowdown: f64) -> Timer {
        let slowdown = format!("--slowdown={}", percent_exact(slowdown));
        Timer {
            units: etc.join("systemd/system"),
            words: ["fstrim", "--all", "--install-timer", &slowdown].map(str::to_owned),
        }
    }

    /// Whether its unit is there.
    pub fn is_installed(&self) -> bool {
        self.units.join(TIMER).exists()
    }

    /// Whether systemd starts it.
    pub fn is_enabled(&self) -> bool {
        self.units.join("timers.target.wants").join(TIMER).exists()
    }

    /// Installs it with this program; returns what that printed.
    ///
    /// # Errors
    /// When it could not be installed.
    pub fn install(&self) -> Result<String, Error> {
        let failed = |why: String| Error::Failed(format!("the timer was not installed: {why}"));
        let units = &self.units;
        fs::create_dir_all(units).map_err(|e| failed(format!("{}: {e}", shown(units))))?;
        let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(program);
        let mut place = OsString::from("unit-dir=");
        place.push(units);
        command.args(&self.words).arg("--set").arg(place);
        let done = command.output().map_err(|e| failed(e.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match done.status.success() {
            true => Ok(text(&done.stdout) + "\n"),
            false => Err(failed(text(&done.stderr))),
        }
    }
}
