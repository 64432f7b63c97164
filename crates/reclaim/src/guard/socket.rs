//! Requests of programs, as lines of JSON on a socket.
//!
//! Only the owner of the guarded directory and root can connect: the kernel checks the socket's
//! mode. A request may do what that owner may do, also if root sends it. Each connection has a
//! thread of its own, and each line is answered at once, whatever the guard is waiting for.

use std::ffi::CString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};

use super::allowance::Allowance;
use super::inbox::{Inbox, SOCKET, give};
use super::names::proc_path;
use super::place::Place;

/// A request is a path and a few words.
const LONGEST: u64 = 16 << 10;

/// The number of programs that are served at the same time.
const MOST: usize = 64;

/// The time between two looks at whether the guard has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The longest wait for a program that doesn't read its answers.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// How many bytes may the program free itself now?
    MayFree { bytes: u64 },
    /// Free this file or directory later.
    FreeLater { path: PathBuf },
    /// Return the guard's report.
    Status {},
}

/// Serves the programs of one guarded directory.
#[derive(Debug)]
pub(super) struct Service {
    listener: UnixListener,
    path: PathBuf,
    guarded: OwnedFd,
    inner: OwnedFd,
    allowance: Allowance,
    served: AtomicUsize,
}

impl Service {
    /// Makes the socket.
    pub(super) fn open(place: &Place, inbox: &Inbox, allowance: Allowance) -> io::Result<Service> {
        let (hidden, name) = (place.hidden(), SOCKET);
        let _ = rustix::fs::unlinkat(hidden, name, AtFlags::empty());
        let listener = UnixListener::bind(format!("{}/socket", proc_path(hidden)))?;
        listener.set_nonblocking(true)?;
        let owner = rustix::fs::fstat(place.directory())?;
        rustix::fs::chmodat(hidden, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        give(hidden, name, &owner)?;
        rustix::fs::renameat(hidden, name, inbox.directory(), name)?;
        Ok(Service {
            listener,
            path: place.path().to_owned(),
            guarded: place.directory().try_clone_to_owned()?,
            inner: inbox.inner().try_clone_to_owned()?,
            allowance,
            served: AtomicUsize::new(0),
        })
    }

    /// The goal has changed.
    pub(super) fn set_goal(&self, goal: pace::Goal) {
        self.allowance.set_goal(goal);
    }

    /// Serves until the guard has ended.
    pub(super) fn run(&self, ended: &AtomicBool) {
        std::thread::scope(|threads| {
            threads.spawn(|| self.allowance.run(ended));
            while !ended.load(Ordering::Relaxed) {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(LOOK_EVERY);
                    continue;
                };
                if self.served.fetch_add(1, Ordering::Relaxed) >= MOST {
                    self.served.fetch_sub(1, Ordering::Relaxed);
                    let _ = answer(&stream, &refused("too many programs are connected"));
                    continue;
                }
                threads.spawn(move || {
                    let _ = self.serve(&stream, ended);
                    self.served.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
    }

    fn serve(&self, stream: &UnixStream, ended: &AtomicBool) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut lines = BufReader::new(stream);
        let mut line = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let room = LONGEST - line.len() as u64;
            match (&mut lines).take(room).read_until(b'\n', &mut line) {
                Ok(0) if line.is_empty() || room > 0 => return Ok(()),
                Ok(_) if line.last() == Some(&b'\n') => {
                    answer(stream, &self.answered(&line))?;
                    line.clear();
                }
                Ok(_) if line.len() as u64 >= LONGEST => {
                    return answer(stream, &refused("the line is too long"));
                }
                Ok(_) => {}
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answered(&self, line: &[u8]) -> Value {
        match serde_json::from_slice(line) {
            Ok(Request::MayFree { bytes }) => {
                let granted = self.allowance.take(bytes);
                let again = (granted < bytes).then_some(LOOK_EVERY.as_millis() as u64);
                json!({ "ok": true, "bytes": granted, "ask_again_ms": again })
            }
            Ok(Request::FreeLater { path }) => match self.free_later(&path) {
                Ok(()) => json!({ "ok": true }),
                Err(why) => refused(&why),
            },
            Ok(Request::Status {}) => match super::status(&self.path) {
                Ok(status) => json!({
                    "ok": true,
                    "waiting": {
                        "files": status.names.waiting_files,
                        "bytes": status.names.waiting_bytes,
                    },
                    "reported": status.reported,
                }),
                Err(error) => refused(&error.to_string()),
            },
            Err(error) => refused(&format!(
                "{error}; send {{\"do\":\"may_free\",\"bytes\":N}}, \
                 {{\"do\":\"free_later\",\"path\":PATH}} or {{\"do\":\"status\"}}"
            )),
        }
    }

    /// Renames something into the inbox, as the owner of the guarded directory may.
    fn free_later(&self, path: &Path) -> Result<(), String> {
        let (parents, name) = below(&self.path, path).ok_or(
            "name a file below the guarded directory, without .. in its path, and none of trimbench's",
        )?;
        let said = crate::words::of;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let parent = rustix::fs::openat2(&self.guarded, &parents, flags, Mode::empty(), resolve);
        let parent = parent.map_err(said)?;
        let owner = |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map_err(said);
        let (top, at) = (owner(self.guarded.as_fd())?, owner(parent.as_fd())?);
        let file = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(said)?;
        if at.st_uid != top.st_uid || at.st_mode & 0o300 != 0o300 || file.st_uid != top.st_uid {
            return Err(
                "it or its directory doesn't belong to the owner of the guarded directory; \
                 rename it into .trimbench/in yourself"
                    .to_owned(),
            );
        }
        for _ in 0..16 {
            let new = format!("{:016x}", fastrand::u64(..));
            let inner = &self.inner;
            match rustix::fs::renameat_with(&parent, &name, inner, &new, RenameFlags::NOREPLACE) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(said(errno)),
            }
        }
        Err("no free name in .trimbench/in".to_owned())
    }
}

/// A path below the guarded directory as its parent there (`.` for the directory itself) and its
/// name; `None` for any other, and for what is trimbench's own.
fn below(guarded: &Path, path: &Path) -> Option<(CString, CString)> {
    let path = match path.is_absolute() {
        true => path.strip_prefix(guarded).ok()?,
        false => path,
    };
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) if !name.as_bytes().starts_with(b".trimbench") => {
                parts.push(name.as_bytes());
            }
            Component::CurDir => {}
            _ => return None,
        }
    }
    let name = CString::new(parts.pop()?).ok()?;
    let parents = match parts.is_empty() {
        true => CString::new(".").ok()?,
        false => CString::new(parts.join(&b'/')).ok()?,
    };
    Some((parents, name))
}

fn refused(why: &str) -> Value {
    json!({ "ok": false, "error": why })
}

fn answer(mut stream: &UnixStream, value: &Value) -> io::Result<()> {
    stream.write_all(format!("{value}\n").as_bytes())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_below_the_guarded_directory_or_nowhere() {
        let of = |path: &str| {
            below(Path::new("/data"), Path::new(path)).map(|(parents, name)| {
                let text = |part: CString| part.into_string().unwrap();
                (text(parents), text(name))
            })
        };
        let found = |parents: &str, name: &str| Some((parents.to_owned(), name.to_owned()));
        assert_eq!(of("a"), found(".", "a"));
        assert_eq!(of("./d/e/a"), found("d/e", "a"));
        assert_eq!(of("/data/d/a"), found("d", "a"));
        for wrong in [
            "",
            ".",
            "..",
            "a/../b",
            "/etc/passwd",
            "/data",
            "/",
            "/database/a",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        for own in [
            ".trimbench/in/a",
            ".trimbench-guard-12345678/5",
            "d/.trimbench/socket",
        ] {
            assert_eq!(of(own), None, "{own}");
        }
    }

    #[test]
    fn requests_are_read_and_nonsense_is_not() {
        let of = |text: &str| serde_json::from_str::<Request>(text).ok();
        let path = PathBuf::from("a\nb");
        assert_eq!(
            of(r#"{"do":"may_free","bytes":5}"#),
            Some(Request::MayFree { bytes: 5 })
        );
        assert_eq!(
            of(r#"{"do":"free_later","path":"a\nb"}"#),
            Some(Request::FreeLater { path })
        );
        assert_eq!(of(r#"{"do":"status"}"#), Some(Request::Status {}));
        for wrong in [
            "",
            "{}",
            "[]",
            r#"{"do":"may_free"}"#,
            r#"{"do":"may_free","bytes":-1}"#,
            r#"{"do":"status","more":1}"#,
            r#"{"do":"stop"}"#,
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
