//! `BLKDISCARD` on a raw device, in steps.

use std::sync::Arc;

use linux::block::discard;
use serde::Serialize;

use super::progress::Progress;
use super::spec::{Files, How, Way, at_least_one};
use super::{refuse, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "discard",
    about: "discard a raw device in steps, as blkdiscard and mkfs do",
    keys: &["chunk"],
    of: |asked, _| {
        let step_bytes = asked.chunk_bytes();
        Ok(Discard { step_bytes }.into())
    },
    discards: true,
    is_word: false,
    ..How::FILES
};

/// `BLKDISCARD` on a raw device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Discard {
    /// Bytes per call, a multiple of 512; the kernel cuts it to the device's limit.
    pub step_bytes: u64,
}

impl Way for Discard {
    fn check(&self, files: &Files) -> Result<(), LoadError> {
        at_least_one(self.step_bytes)?;
        let (len, step_bytes) = (files.size_bytes, self.step_bytes);
        let start = files.device.as_ref().map_or(0, |device| device.start);
        if len == 0
            || [start, len, step_bytes]
                .iter()
                .any(|bytes| !bytes.is_multiple_of(512))
        {
            return Err(refuse(format!(
                "can't discard {len} bytes from {start} in steps of {step_bytes}: \
                 all must be multiples of 512"
            )));
        }
        Ok(())
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let len = files.size_bytes;
        let device = files
            .device
            .ok_or_else(|| refuse("there is no device to discard"))?;
        let progress = Progress::new(clock, 1, len, 0);
        spawn(progress, move |progress, call| {
            let mut done = 0;
            while done < len && !progress.stopping() {
                let bytes = self.step_bytes.min(len - done);
                let at = device.start + done;
                if let Err(error) = call.make(bytes, || discard(&device.file, &(at..at + bytes))) {
                    // What fails once fails always: unsupported, read-only, gone.
                    progress.fail(&device.path, "discard", &error);
                    return;
                }
                done += bytes;
            }
        })
    }
}
