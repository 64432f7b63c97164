//! Tables of the device mapper: which targets make up a device, with their parameters.
//!
//! Keys of encrypted devices stand in their tables, so no table of dm-crypt is ever read.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::SysRoot;

/// One target of a device's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its type, e.g. `thin-pool`.
    pub kind: String,
    /// Its parameters, as `dmsetup table` prints them.
    pub parameters: Vec<String>,
}

/// Tables by the name that the device mapper has for the device (`dm/name`).
pub type Tables = HashMap<String, Vec<Target>>;

/// A recorded tree has the output of `dmsetup table` in this file.
const RECORDED: &str = "/dmsetup-table";

/// `DM_TABLE_STATUS`, `_IOWR(0xfd, 12, struct dm_ioctl)` of `include/uapi/linux/dm-ioctl.h`.
const TABLE_STATUS: libc::Ioctl = 0xC138_FD0C_u32 as libc::Ioctl;

/// `DM_STATUS_TABLE_FLAG`: the table instead of the status.
const AS_TABLE: u32 = 1 << 4;

/// Sizes of the head, of a target's head, and of all that is read of a table.
const HEAD: usize = 312;
const TARGET: usize = 40;
const MOST: usize = 16 << 10;

/// The tables of all devices but those of dm-crypt.
///
/// # Errors
/// The kernel's error where `/dev/mapper/control` can't be opened (it needs root). A machine
/// without the device mapper has no tables.
pub fn tables(sys: &SysRoot) -> io::Result<Tables> {
    if !sys.is_host() {
        return Ok(sys
            .text(RECORDED)
            .map(|text| parse(&text))
            .unwrap_or_default());
    }
    let names = names(sys);
    if names.is_empty() {
        return Ok(Tables::new());
    }
    let control = File::options()
        .read(true)
        .write(true)
        .open("/dev/mapper/control")?;
    let table = |name: String| table(&control, &name).ok().map(|table| (name, table));
    Ok(names.into_iter().filter_map(table).collect())
}

/// Names of the devices whose tables hold no key.
fn names(sys: &SysRoot) -> Vec<String> {
    let name = |device: &String| {
        let uuid = sys.class(device).join("dm/uuid");
        let is_crypt = crate::sysroot::text(&uuid).ok()?.starts_with("CRYPT-");
        sys.attribute(device, "dm/name").filter(|_| !is_crypt)
    };
    sys.devices().iter().filter_map(name).collect()
}

fn table(control: &File, name: &str) -> io::Result<Vec<Target>> {
    let mut buffer = vec![0u8; MOST];
    let mut put = |at: usize, bytes: &[u8]| buffer[at..at + bytes.len()].copy_from_slice(bytes);
    // Version 4.0.0, sizes, flags, name.
    put(0, &4u32.to_ne_bytes());
    put(12, &(MOST as u32).to_ne_bytes());
    put(16, &(HEAD as u32).to_ne_bytes());
    put(28, &AS_TABLE.to_ne_bytes());
    put(48, &name.as_bytes()[..name.len().min(127)]);
    // SAFETY: the request reads and writes one `dm_ioctl` with as many bytes of data as its
    // head says, which are there, and keeps no pointer to them.
    let done = unsafe { libc::ioctl(control.as_raw_fd(), TABLE_STATUS, buffer.as_mut_ptr()) };
    match done {
        0 => Ok(targets(&buffer)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The targets in the kernel's answer, without those that don't fit it.
fn targets(answer: &[u8]) -> Vec<Target> {
    let number = |at: usize| -> Option<usize> {
        let bytes = answer.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?) as usize)
    };
    let text = |at: usize, most: usize| -> String {
        let bytes = answer.get(at..(at + most).min(answer.len())).unwrap_or(&[]);
        let end = bytes
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let (Some(start), Some(count)) = (number(16), number(20)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut at = start;
    for _ in 0..count.min(MOST / TARGET) {
        let Some(next) = number(at + 20) else { break };
        if at + TARGET > answer.len() {
            break;
        }
        found.push(Target {
            kind: text(at + 24, 16),
            parameters: words(&text(at + TARGET, MOST)),
        });
        at = start + next;
    }
    found
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Tables as `dmsetup table` prints them, and [`parse`] reads them, without places and lengths.
pub fn text(tables: &Tables) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (name, targets) in tables {
        for target in targets {
            lines.push(format!(
                "{name}: 0 0 {} {}\n",
                target.kind,
                target.parameters.join(" ")
            ));
        }
    }
    lines.sort();
    lines.concat()
}

/// Parses the output of `dmsetup table`: `name: start length type parameters…`. dm-crypt's
/// lines keep only the words behind the key and the place.
pub fn parse(text: &str) -> Tables {
    let mut tables = Tables::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(": ") else {
            continue;
        };
        let mut rest = words(rest).into_iter().skip(2);
        let Some(kind) = rest.next() else { continue };
        let parameters = match kind.as_str() {
            "crypt" => rest.skip(5).collect(),
            _ => rest.collect(),
        };
        tables
            .entry(name.to_owned())
            .or_default()
            .push(Target { kind, parameters });
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dmsetup_table_is_read_without_keys() {
        let tables = parse(
            "vg-pool-tpool: 0 2048 thin-pool 253:1 253:2 128 0 1 no_discard_passdown\n\
             vg-data: 0 100 linear 8:3 2048\nvg-data: 100 100 linear 8:4 2048\n\
             luks: 0 4096 crypt aes-xts-plain64 00ff 0 8:5 4096 1 allow_discards\nodd\n",
        );
        assert_eq!(tables["vg-data"].len(), 2);
        assert_eq!(tables["vg-pool-tpool"][0].kind, "thin-pool");
        assert_eq!(tables["luks"][0].parameters, ["1", "allow_discards"]);
    }

    #[test]
    fn an_answer_of_the_kernel_is_read_and_a_broken_one_survived() {
        let mut answer = vec![0u8; 512];
        let mut put = |at: usize, bytes: &[u8]| answer[at..at + bytes.len()].copy_from_slice(bytes);
        put(16, &(HEAD as u32).to_ne_bytes());
        put(20, &2u32.to_ne_bytes());
        put(HEAD + 20, &64u32.to_ne_bytes());
        put(HEAD + 24, b"linear");
        put(HEAD + TARGET, b"8:3 2048");
        put(HEAD + 64 + 20, &128u32.to_ne_bytes());
        put(HEAD + 64 + 24, b"thin");
        put(HEAD + 64 + TARGET, b"253:4 1");
        let found = targets(&answer);
        assert_eq!(found[0].parameters, ["8:3", "2048"]);
        assert_eq!((found[1].kind.as_str(), found.len()), ("thin", 2));
        for length in [0, 17, 30, HEAD + 10, HEAD + 50, HEAD + 100] {
            targets(&answer[..length]);
        }
        put_all(&mut answer, 0xff);
        targets(&answer);
    }

    fn put_all(bytes: &mut [u8], value: u8) {
        bytes[16..].fill(value);
    }
}
