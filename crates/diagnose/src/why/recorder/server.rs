//! Where a recorder runs, and how it is asked: a directory with a lock and a socket.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::units::names::shown;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::Recorder;
use super::recording::{Recording, RecordingError};

/// The directory of root's recorder.
pub const DIRECTORY: &str = "/run/trimbench";

const SOCKET: &str = "recorder.socket";
const LOCK: &str = "recorder.lock";

/// The bits of a mode that let the group or all others write.
const OTHERS_WRITE: u32 = 0o022;

/// Neither side waits longer for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a recorder can't start or answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServerError {
    #[error(
        "a recorder runs already (process {pid}, {directory}); ask it with `trimbench why --since \
         5m`, or stop it first"
    )]
    Runs { pid: String, directory: String },
    #[error(
        "others may write in {directory}, and could have the recorder write elsewhere; name a \
         directory that is this user's alone"
    )]
    Shared { directory: String },
    #[error(
        "{path} can't be used: {source}; run it as root, or name another (--set directory=DIR)"
    )]
    Use { path: String, source: io::Error },
    #[error(
        "no recorder runs in {directory}; start one with `trimbench why --record`, or as a service \
         with `systemctl enable --now trimbench-record`"
    )]
    None { directory: String },
    #[error("the recorder in {directory} does not let this user ask; run it as root")]
    Denied { directory: String },
    #[error("the recorder in {directory} gave no recording: {source}")]
    Answer {
        directory: String,
        source: RecordingError,
    },
}

/// The place of a running recorder. Dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    socket: PathBuf,
    /// Locked as long as the recorder runs; the kernel unlocks it however that ends.
    _lock: File,
}

impl Server {
    /// Takes a directory, which is made if it isn't there.
    ///
    /// # Errors
    /// When another recorder has it, when it is not this user's alone, or it can't be written.
    pub fn open(directory: &Path) -> Result<Server, ServerError> {
        let used = |path: &Path, source| ServerError::Use {
            path: shown(path),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| used(directory, source))?;
        let found = fs::metadata(directory).map_err(|source| used(directory, source))?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        if !own || found.mode() & OTHERS_WRITE != 0 {
            return Err(ServerError::Shared {
                directory: shown(directory),
            });
        }
        let place = directory.join(LOCK);
        let lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&place);
        let mut lock = lock.map_err(|source| used(&place, source))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = lock.read_to_string(&mut pid);
                return Err(ServerError::Runs {
                    pid: pid.trim().to_owned(),
                    directory: shown(directory),
                });
            }
            Err(errno) => return Err(used(&place, errno.into())),
        }
        let written = lock
            .set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(|source| used(&place, source))?;
        let socket = directory.join(SOCKET);
        // One that was killed leaves it.
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        Ok(Server {
            listener: listener.map_err(|source| used(&socket, source))?,
            socket,
            _lock: lock,
        })
    }

    /// Answers whoever asks now. It does not wait for anybody to ask.
    pub fn answer(&self, recorder: &mut Recorder) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            // Whoever goes away or does not read gets nothing.
            let _ = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
                .and_then(|()| recorder.write(0.0, &mut stream));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Asks the recorder in a directory for all that it has kept.
///
/// # Errors
/// When none runs there, or it does not let this user or does not answer.
pub fn request(directory: &Path) -> Result<Recording, ServerError> {
    let place = || shown(directory);
    let socket = directory.join(SOCKET);
    let stream = UnixStream::connect(&socket).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ServerError::Denied { directory: place() },
        _ => ServerError::None { directory: place() },
    })?;
    let answer = |source| ServerError::Answer {
        directory: place(),
        source,
    };
    let patient = stream.set_read_timeout(Some(PATIENCE));
    patient.map_err(|error| answer(error.into()))?;
    Recording::read(BufReader::new(stream)).map_err(answer)
}
