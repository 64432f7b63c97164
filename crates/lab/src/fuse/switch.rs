//! The machine's switch for FUSE over io_uring, on for the moment of a mount.
//!
//! The kernel offers queues to a connection only while `enable_uring` of the module `fuse` is on.
//! It is off by default. So a server turns it on before it mounts, and off after the kernel's first
//! message.
//!
//! A note holds the value to put back. It is written before the switch is turned and emptied
//! afterwards, and a lock on it is held in between. The kernel drops the lock of a killed process.
//! So a note that isn't empty and isn't locked is one of a killed process, and whoever finds it
//! carries it out. Nobody touches the switch without the lock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::units::names;
use rustix::io::Errno;

use crate::error::LabError;
use crate::lock;

/// How long a server waits for the server of another drive, which needs the switch for some
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The switch, and the place of the note.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    parameter: PathBuf,
    note: PathBuf,
}

/// The switch is on until this is dropped. Nobody else turns it meanwhile.
#[derive(Debug)]
pub(crate) struct On<'a> {
    switch: &'a Switch,
    /// Locked.
    note: File,
    /// Whether it was off before.
    was_off: bool,
}

/// Puts back the kernel's switch for FUSE over io_uring, if a process that had turned it on was
/// killed. Leaves it alone while a living process needs it. Every command of the laboratory begins
/// with this.
///
/// # Errors
/// If the note of the killed process can't be read, or the switch can't be turned.
pub fn put_back_switch() -> Result<(), LabError> {
    let switch = Switch::system();
    let back = switch.restore();
    back.map_err(LabError::io("cannot put back N in", &switch.parameter))
}

impl Switch {
    /// The machine's.
    pub(crate) fn system() -> Switch {
        Switch {
            parameter: "/sys/module/fuse/parameters/enable_uring".into(),
            note: "/run/trimbench/fuse-io-uring".into(),
        }
    }

    /// Whether the kernel has one. The module that has it may not be loaded yet.
    pub(crate) fn is_there(&self) -> bool {
        self.parameter.exists()
    }

    /// Turns it on, where it isn't on already.
    ///
    /// # Errors
    /// `NotFound` if the kernel has no such switch. An error that names the switch if this process
    /// may not turn it, or another one keeps it. Then it is as it was.
    pub(crate) fn on(&self) -> io::Result<On<'_>> {
        self.is_on()?;
        let on = self.note().and_then(|mut note| {
            lock::try_for(&note, PATIENCE)?;
            self.settle(&mut note)?;
            // From here on the drop puts it back, also if turning fails.
            let mut on = On {
                switch: self,
                note,
                was_off: !self.is_on()?,
            };
            if on.was_off {
                on.note.write_all(b"N")?;
                fs::write(&self.parameter, "Y")?;
            }
            Ok(on)
        });
        on.map_err(|error| {
            let parameter = names::shown(&self.parameter);
            io::Error::new(error.kind(), format!("cannot turn on {parameter}: {error}"))
        })
    }

    /// Puts it back if a process that had turned it on was killed.
    fn restore(&self) -> io::Result<()> {
        if !self.note.exists() {
            return Ok(());
        }
        let mut note = self.note()?;
        match lock::try_for(&note, lock::GLANCE) {
            // Its holder lives, and puts it back.
            Err(Errno::WOULDBLOCK) => Ok(()),
            locked => {
                locked?;
                self.settle(&mut note)
            }
        }
    }

    /// Carries out the note of a killed process. This process has the lock.
    fn settle(&self, note: &mut File) -> io::Result<()> {
        let mut text = String::new();
        note.read_to_string(&mut text)?;
        if text.is_empty() {
            return Ok(());
        }
        if self.is_on()? {
            fs::write(&self.parameter, "N")?;
        }
        empty(note)
    }

    fn is_on(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(&self.parameter)?.starts_with('Y'))
    }

    /// Opens the note, which only this user may lock.
    fn note(&self) -> io::Result<File> {
        let dir = self.note.parent().unwrap_or(Path::new("/"));
        linux::files::make_own_directory(dir)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).mode(0o600);
        options.truncate(false).open(&self.note)
    }
}

impl Drop for On<'_> {
    fn drop(&mut self) {
        if !self.was_off {
            return;
        }
        // The note is emptied last: a process killed in between leaves one that changes nothing.
        let is_off = || self.switch.is_on().is_ok_and(|on| !on);
        if is_off() || fs::write(&self.switch.parameter, "N").is_ok() {
            let _ = empty(&mut self.note);
        }
    }
}

fn empty(note: &mut File) -> io::Result<()> {
    note.set_len(0)?;
    note.rewind()
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FlockOperation, flock};

    use super::*;

    fn switch(dir: &Path, value: &str) -> Switch {
        let switch = Switch {
            parameter: dir.join("parameter"),
            note: dir.join("run/note"),
        };
        fs::write(&switch.parameter, value).unwrap();
        switch
    }

    fn value(switch: &Switch) -> String {
        fs::read_to_string(&switch.parameter).unwrap()
    }

    /// Nothing of the process runs any more, and the kernel drops its lock.
    fn kill(on: On<'_>) {
        flock(&on.note, FlockOperation::Unlock).unwrap();
        std::mem::forget(on);
    }

    #[test]
    fn is_on_for_a_moment_and_back_after_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "N\n");
        switch.restore().unwrap();
        drop(switch.on().unwrap());
        assert_eq!(value(&switch), "N");
        let on = switch.on().unwrap();
        assert_eq!(value(&switch), "Y");
        kill(on);
        switch.restore().unwrap();
        assert_eq!(value(&switch), "N");
        assert_eq!(fs::read_to_string(&switch.note).unwrap(), "");
        kill(switch.on().unwrap());
        drop(switch.on().unwrap());
        assert_eq!(value(&switch), "N", "the next drive puts it back, too");
    }

    #[test]
    fn is_left_alone_while_another_drive_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "N\n");
        let on = switch.on().unwrap();
        switch.restore().unwrap();
        assert_eq!(value(&switch), "Y");
        drop(on);
        assert_eq!(value(&switch), "N");
    }

    #[test]
    fn stays_on_where_the_administrator_turned_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "Y\n");
        drop(switch.on().unwrap());
        switch.restore().unwrap();
        assert_eq!(value(&switch), "Y\n");
    }

    #[test]
    fn an_old_note_is_emptied_where_the_switch_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "N\n");
        fs::create_dir_all(switch.note.parent().unwrap()).unwrap();
        fs::write(&switch.note, "N").unwrap();
        switch.restore().unwrap();
        assert_eq!(value(&switch), "N\n", "nothing was written");
        assert_eq!(fs::read_to_string(&switch.note).unwrap(), "");
        fs::remove_file(&switch.parameter).unwrap();
        let none = switch.on().unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
