//! Archives of machines that are made up, and of this one.

use std::io::Cursor;

use testkit::Machine;

use super::*;
use crate::inspect::{Now, Options, Scope, inspect};

fn options() -> Options {
    Options {
        now: Now {
            unix_s: 1_795_485_600,
            offset_s: 0,
        },
        ..Options::default()
    }
}

fn archived(sys: &SysRoot) -> (tempfile::TempDir, Vec<u8>) {
    let mut bytes = Vec::new();
    collect(sys, &mut bytes).unwrap();
    let into = tempfile::tempdir().unwrap();
    unpack(&mut Cursor::new(&bytes), into.path()).unwrap();
    (into, bytes)
}

#[test]
fn an_archive_of_this_machine_shows_what_the_machine_shows() {
    let sys = SysRoot::host();
    let (into, bytes) = archived(&sys);
    assert!(bytes.len() < 20 << 20, "{}", bytes.len());
    let here = inspect(&sys, &Scope::All, &options()).unwrap();
    let there = inspect(&SysRoot::at(into.path()), &Scope::All, &options()).unwrap();
    let layers = |found: &crate::inspect::Inspection| -> Vec<(String, u64)> {
        let all = found.stacks.iter().flat_map(|stack| &stack.layers);
        let mut all: Vec<_> = all
            .map(|one| (one.name.clone(), one.limits.max_bytes))
            .collect();
        all.sort();
        all
    };
    // Others make and remove loop devices meanwhile.
    let lasting = |all: Vec<(String, u64)>| -> Vec<(String, u64)> {
        all.into_iter()
            .filter(|one| !one.0.starts_with("loop"))
            .collect()
    };
    let (here, there) = (lasting(layers(&here)), lasting(layers(&there)));
    assert!(!there.is_empty());
    assert_eq!(here, there);
}

#[test]
fn secrets_stay_where_they_are() {
    let machine = Machine::new(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / /w rw - cifs //s/w rw,username=kim,password=hush,vers=3\n",
    );
    machine.write(
        "etc/fstab",
        "//s/w /w cifs credentials=/root/hush,password=hush2,noatime 0 0\n",
    );
    machine.write(
        "etc/crypttab",
        "data /dev/sdb /root/hush-key luks,discard\n",
    );
    machine.write(
        "etc/cron.d/own",
        "PASSWORD=hush3\n1 2 * * * root backup --token hush4\n5 5 * * 0 root fstrim /\n",
    );
    machine.write("etc/cron.d/other", "1 2 * * * root backup --token hush5\n");
    let (into, bytes) = archived(&SysRoot::at(machine.root()));
    let text = String::from_utf8_lossy(&bytes);
    assert!(!text.contains("hush"), "{text}");
    let read = |path: &str| fs::read_to_string(into.path().join(path)).unwrap();
    assert_eq!(
        read("etc/fstab"),
        "//s/w /w cifs credentials=,password=,noatime 0 0\n"
    );
    assert_eq!(read("etc/crypttab"), "data /dev/sdb none luks,discard\n");
    assert_eq!(read("etc/cron.d/own"), "5 5 * * 0 root fstrim /\n");
    assert!(read("proc/self/mountinfo").contains("vers=3"));
}

#[test]
fn an_archive_that_leads_out_is_refused() {
    for (name, target) in [
        ("../x", ""),
        ("a/../../x", ""),
        ("a", "../../etc"),
        ("b/c", "/../etc"),
    ] {
        let mut bytes = Vec::new();
        let mut writer = tar::Writer::new(&mut bytes);
        match target {
            "" => writer.file(Path::new(name), b"x").unwrap(),
            target => writer.link(Path::new(name), Path::new(target)).unwrap(),
        }
        writer.end().unwrap();
        let into = tempfile::tempdir().unwrap();
        let refused = unpack(&mut Cursor::new(&bytes), into.path());
        assert!(
            matches!(refused, Err(UnpackError::Outside(_))),
            "{name} {refused:?}"
        );
        // A part of it.
        let refused = unpack(&mut Cursor::new(&bytes[..300]), into.path());
        assert!(matches!(refused, Err(UnpackError::Form)), "{refused:?}");
    }
}
