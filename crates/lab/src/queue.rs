//! The queue settings of a new drive.
//!
//! They belong to the loop device's number and stay when its file is detached. So a new drive would
//! have the settings of the number's last user. `write_cache` matters most. If it is "write
//! through", the kernel sends no flushes, and a power cut loses writes that were fsynced.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The value of a setting on a new drive.
enum Fresh {
    /// This value.
    Is(&'static str),
    /// The kernel's choice, asked for with the first of these values that it takes.
    Chosen(&'static [&'static str]),
}

use Fresh::{Chosen, Is};

/// All settings. The scheduler comes first, for `nr_requests` and `wbt_lat_usec` follow it.
const SETTINGS: &[(&str, Fresh)] = &[
    ("scheduler", Is("none")),
    ("write_cache", Is("write back")),
    ("rotational", Is("0")),
    ("add_random", Is("0")),
    ("iostats", Is("1")),
    ("iostats_passthrough", Is("0")),
    ("nomerges", Is("0")),
    ("nr_requests", Is("128")),
    ("rq_affinity", Is("1")),
    ("stable_writes", Is("0")),
    ("wbt_lat_usec", Chosen(&["-1"])),
    // Before Linux 6.9 there was no 0.
    ("max_sectors_kb", Chosen(&["0", "1280"])),
    // Newer kernels compute it from the limits whenever one changes.
    ("read_ahead_kb", Is("128")),
];

/// Gives a new loop device the settings of an unused drive.
///
/// # Errors
/// If the kernel refuses one.
pub(crate) fn renew(device: &Path) -> Result<(), LabError> {
    for (name, fresh) in SETTINGS {
        let file = of(device).join(name);
        // This kernel or this device has no such setting.
        if file.exists() {
            set(&file, fresh).map_err(LabError::io("cannot renew", file))?;
        }
    }
    Ok(())
}

/// The directory of a device's settings.
pub(crate) fn of(device: &Path) -> PathBuf {
    let name = device.file_name().unwrap_or_default();
    Path::new("/sys/block").join(name).join("queue")
}

fn set(file: &Path, fresh: &Fresh) -> io::Result<()> {
    match fresh {
        Chosen(values) => {
            let mut outcome = Ok(());
            for value in *values {
                outcome = fs::write(file, value);
                if outcome.is_ok() {
                    break;
                }
            }
            outcome
        }
        Is(value) if is(&fs::read_to_string(file)?, value) => Ok(()),
        Is(value) => {
            fs::write(file, value)?;
            let now = fs::read_to_string(file)?;
            match is(&now, value) {
                true => Ok(()),
                false => Err(io::Error::other(format!("it stays `{}`", now.trim()))),
            }
        }
    }
}

/// Whether a setting shows a value; of several the one in brackets.
fn is(shown: &str, value: &str) -> bool {
    shown.trim() == value || shown.contains(&format!("[{value}]"))
}
