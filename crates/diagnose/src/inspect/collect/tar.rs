//! A tar as POSIX has it (ustar), with long names as GNU has them: as much as `--collect` writes.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

/// The size of a block, in bytes.
const BLOCK: usize = 512;

/// An archive unpacks to this size at most, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Writes an archive.
pub(super) struct Writer<W: Write> {
    to: W,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(to: W) -> Writer<W> {
        Writer { to }
    }

    pub(super) fn file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.entry(b'0', path, Path::new(""), bytes)
    }

    pub(super) fn directory(&mut self, path: &Path) -> io::Result<()> {
        self.entry(b'5', path, Path::new(""), b"")
    }

    pub(super) fn link(&mut self, path: &Path, target: &Path) -> io::Result<()> {
        self.entry(b'2', path, target, b"")
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        self.to.write_all(&[0; 2 * BLOCK])?;
        self.to.flush()
    }

    fn entry(&mut self, kind: u8, path: &Path, target: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = path
            .strip_prefix("/")
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned();
        let target = target.to_string_lossy().into_owned();
        for (long, kind) in [(&name, b'L'), (&target, b'K')] {
            if long.len() > 100 {
                self.raw(
                    kind,
                    "././@LongLink",
                    "",
                    &[long.as_bytes(), b"\0"].concat(),
                )?;
            }
        }
        self.raw(kind, &name, &target, bytes)
    }

    fn raw(&mut self, kind: u8, name: &str, target: &str, bytes: &[u8]) -> io::Result<()> {
        let mut head = [0; BLOCK];
        let mut put = |at: usize, text: &[u8]| head[at..at + text.len()].copy_from_slice(text);
        put(0, &name.as_bytes()[..name.len().min(100)]);
        put(
            100,
            if kind == b'5' {
                b"0000755\0"
            } else {
                b"0000644\0"
            },
        );
        put(108, b"0000000\0");
        put(116, b"0000000\0");
        put(124, format!("{:011o}\0", bytes.len()).as_bytes());
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[kind]);
        put(157, &target.as_bytes()[..target.len().min(100)]);
        put(257, b"ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.to.write_all(&head)?;
        self.to.write_all(bytes)?;
        let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
        self.to.write_all(&[0; BLOCK][..rest])
    }
}

/// Why an archive can't be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// It can't be read, or its content not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Not an archive of `--collect`, or a part of one.
    #[error("it is no tar of `trimbench inspect --collect`, or a part of it is missing")]
    Form,
    /// A name that leads out of the directory.
    #[error("it holds the name {0}, which leads out of it")]
    Outside(String),
}

/// Unpacks an archive below a directory. Links may lead to other places of the archive only.
///
/// # Errors
/// As [`UnpackError`] says.
pub fn unpack(from: &mut dyn Read, into: &Path) -> Result<(), UnpackError> {
    let (mut long_name, mut long_target) = (None, None);
    let mut sum = 0;
    loop {
        let mut head = [0; BLOCK];
        from.read_exact(&mut head).map_err(|_| UnpackError::Form)?;
        if head == [0; BLOCK] {
            return Ok(());
        }
        let text = |at: usize, most: usize| {
            let bytes = &head[at..at + most];
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(most);
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        let size = u64::from_str_radix(text(124, 12).trim(), 8).map_err(|_| UnpackError::Form)?;
        sum += size;
        if &head[257..262] != b"ustar" || sum > MOST_BYTES {
            return Err(UnpackError::Form);
        }
        let mut bytes = vec![0; size as usize];
        from.read_exact(&mut bytes).map_err(|_| UnpackError::Form)?;
        let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
        from.read_exact(&mut [0; BLOCK][..rest])
            .map_err(|_| UnpackError::Form)?;
        let long = || {
            String::from_utf8_lossy(&bytes)
                .trim_end_matches('\0')
                .to_owned()
        };
        match head[156] {
            b'L' => long_name = Some(long()),
            b'K' => long_target = Some(long()),
            kind => {
                let prefix = text(345, 155);
                let short = match prefix.is_empty() {
                    true => text(0, 100),
                    false => format!("{prefix}/{}", text(0, 100)),
                };
                let name = long_name.take().unwrap_or(short);
                let target = long_target.take().unwrap_or_else(|| text(157, 100));
                place(into, &name, &target, kind, &bytes)?;
            }
        }
    }
}

fn place(into: &Path, name: &str, target: &str, kind: u8, bytes: &[u8]) -> Result<(), UnpackError> {
    let inside = within(Path::new(""), Path::new(name));
    let inside = inside.ok_or_else(|| UnpackError::Outside(name.to_owned()))?;
    let path = into.join(&inside);
    let directory = match kind {
        b'5' => path.as_path(),
        _ => path.parent().unwrap_or(into),
    };
    fs::create_dir_all(directory)?;
    // No link on the way may lead out.
    let real = fs::canonicalize(directory)?;
    if !real.starts_with(fs::canonicalize(into)?) {
        return Err(UnpackError::Outside(name.to_owned()));
    }
    match kind {
        b'2' => {
            let above = inside.parent().unwrap_or(Path::new(""));
            // An absolute one begins at the root of the machine that was copied.
            let to = match Path::new(target).strip_prefix("/") {
                Ok(absolute) => within(Path::new(""), absolute),
                Err(_) => within(above, Path::new(target)),
            };
            match to {
                Some(to) => symlink(relative(above).join(to), path)?,
                None => return Err(UnpackError::Outside(target.to_owned())),
            }
        }
        b'0' | 0 => fs::write(path, bytes)?,
        _ => {}
    }
    Ok(())
}

/// A path below the root, without dots; `None` if it leads out.
fn within(from: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = from.to_owned();
    for part in path.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir => found.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// The way from a directory to the root.
fn relative(from: &Path) -> PathBuf {
    from.components().map(|_| "..").collect()
}
