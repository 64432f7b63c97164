//! The machine's switch for FUSE over io_uring, on for the moment of a mount.
//!
//! The kernel offers queues to a connection only while `enable_uring` of the module `fuse` is on.
//! It is off by default. A note beside a lock says what it was, so that whoever comes after a
//! process that was killed can put it back.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

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

impl Switch {
    /// The machine's.
    pub(crate) fn system() -> Switch {
        Switch {
            parameter: "/sys/module/fuse/parameters/enable_uring".into(),
            note: "/run/trimbench/fuse-io-uring".into(),
        }
    }

    /// The kernel's file.
    pub(crate) fn parameter(&self) -> &Path {
        &self.parameter
    }

    /// Turns it on, where it isn't on already.
    ///
    /// # Errors
    /// If the kernel has no such switch, or this process may not turn it.
    pub(crate) fn on(&self) -> io::Result<On<'_>> {
        self.is_on()?;
        if let Some(dir) = self.note.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut note = open(&self.note)?;
        self.settle(&mut note)?;
        let was_off = !self.is_on()?;
        // From here on the drop puts it back, also if turning fails.
        let mut on = On {
            switch: self,
            note,
            was_off,
        };
        if was_off {
            on.note.write_all(b"N")?;
            fs::write(&self.parameter, "Y")?;
        }
        Ok(on)
    }

    /// Puts it back if a process that had turned it on was killed. Waits for one that lives.
    ///
    /// # Errors
    /// If the note can't be read or the switch can't be turned.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if !self.note.exists() {
            return Ok(());
        }
        self.settle(&mut open(&self.note)?)
    }

    /// Carries out what the note of a killed process says.
    fn settle(&self, note: &mut File) -> io::Result<()> {
        let mut text = String::new();
        note.read_to_string(&mut text)?;
        if !text.is_empty() {
            fs::write(&self.parameter, &text)?;
            note.set_len(0)?;
            note.rewind()?;
        }
        Ok(())
    }

    fn is_on(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(&self.parameter)?.starts_with('Y'))
    }
}

impl Drop for On<'_> {
    fn drop(&mut self) {
        // The note goes last: a process killed in between leaves one that changes nothing.
        if self.was_off && fs::write(&self.switch.parameter, "N").is_ok() {
            let _ = self.note.set_len(0);
        }
    }
}

fn open(note: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let note = options.open(note)?;
    flock(&note, FlockOperation::LockExclusive)?;
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(dir: &Path, value: &str) -> Switch {
        let switch = Switch {
            parameter: dir.join("parameter"),
            note: dir.join("run/note"),
        };
        fs::write(&switch.parameter, value).unwrap();
        switch
    }

    #[test]
    fn is_on_for_a_moment_and_back_after_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "N\n");
        let value = || fs::read_to_string(&switch.parameter).unwrap();
        switch.restore().unwrap();
        drop(switch.on().unwrap());
        assert_eq!(value(), "N");
        let on = switch.on().unwrap();
        assert_eq!(value(), "Y");
        // As if this process had been killed: nothing runs, and the lock is free.
        flock(&on.note, FlockOperation::Unlock).unwrap();
        std::mem::forget(on);
        switch.restore().unwrap();
        assert_eq!(value(), "N");
        assert_eq!(fs::read_to_string(&switch.note).unwrap(), "");
        let on = switch.on().unwrap();
        flock(&on.note, FlockOperation::Unlock).unwrap();
        std::mem::forget(on);
        drop(switch.on().unwrap());
        assert_eq!(value(), "N", "the next drive puts it back, too");
    }

    #[test]
    fn stays_on_where_the_administrator_turned_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let switch = switch(dir.path(), "Y\n");
        drop(switch.on().unwrap());
        switch.restore().unwrap();
        assert_eq!(fs::read_to_string(&switch.parameter).unwrap(), "Y\n");
        fs::remove_file(&switch.parameter).unwrap();
        switch.on().unwrap_err();
    }
}
