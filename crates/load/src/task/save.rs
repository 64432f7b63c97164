//! `save`: what an editor does, and every program that must not lose a file.
//!
//! A new file is written and made durable, renamed over the old one, and the
//! directory is made durable: one operation. The rename frees the old file's
//! few blocks, so on a mount with discards each operation leads to a discard
//! of that size.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;

use super::data::Data;
use super::durable::Flush;
use super::folder::Folder;
use super::{Kind, ONE_AFTER_THE_OTHER, Prepared, Stopwatch, Task, TaskSpec};

/// Write a new file, fsync, rename, fsync the directory.
pub(super) static SAVE: Kind = Kind {
    name: "save",
    about: "writes a new file, fsyncs it, renames it over the old one and fsyncs the directory, as an editor does",
    series: &["save"],
    default_block_bytes: 16 << 10,
    default_size_bytes: 0,
    default_arrival: ONE_AFTER_THE_OTHER,
    start: Save::start,
};

struct Save {
    folder: Folder,
    document: Document,
    data: Data,
}

struct Document {
    name: String,
    new_name: String,
    /// An operation that failed may have left its new file behind.
    leftover: bool,
}

impl Save {
    fn start(spec: &TaskSpec, lane: u32, seed: u64, _stop: &AtomicBool) -> Prepared {
        let name = format!("document-{lane}");
        let mut save = Save {
            folder: Folder::open(&spec.dir)?,
            document: Document {
                new_name: format!("{name}.new"),
                name,
                leftover: false,
            },
            data: Data::new(spec.block_bytes as usize, seed),
        };
        // The first operation replaces one, too.
        let saved = save.document.save(&save.folder, save.data.bytes());
        saved.map_err(|error| {
            save.folder
                .failed(&save.document.new_name, "save it", error)
        })?;
        save.data.renew();
        Ok(Box::new(save))
    }
}

impl Task for Save {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        let bytes = self.data.bytes();
        watch.time(0, || self.document.save(&self.folder, bytes))?;
        self.data.renew();
        Ok(())
    }
}

impl Document {
    fn save(&mut self, folder: &Folder, bytes: &[u8]) -> io::Result<()> {
        if self.leftover {
            folder.unlink_if_there(&self.new_name)?;
        }
        let file = folder.create(&self.new_name)?;
        self.leftover = true;
        file.write_all_at(bytes, 0)?;
        Flush::Fsync.flush(&file)?;
        drop(file);
        folder.rename(&self.new_name, &self.name)?;
        self.leftover = false;
        folder.fsync()
    }
}
