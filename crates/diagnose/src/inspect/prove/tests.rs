//! Conclusions from made-up counts; the real thing is tested end to end.

use super::probe::conclude;
use super::*;

fn layer(name: &str, below: &[&str], top: bool, share: Option<f64>) -> Counted {
    Counted {
        name: name.to_owned(),
        below: below.iter().map(|one| (*one).to_owned()).collect(),
        top,
        bytes: share.map(|share| (share * PROBE_BYTES as f64) as u64),
        commands: 1,
        share: share.unwrap_or(0.0),
    }
}

fn raw(unchanged: u64, zero: u64, other: u64) -> Raw {
    Raw {
        unchanged_bytes: unchanged,
        zero_bytes: zero,
        other_bytes: other,
    }
}

#[test]
fn errors_name_the_device_and_a_step_that_helps() {
    let sdq = |kind: io::ErrorKind, is_root| unread(Path::new("/dev/sdq"), &kind.into(), is_root);
    let absent = sdq(io::ErrorKind::NotFound, true);
    assert!(absent.starts_with("there is no /dev/sdq here;"), "{absent}");
    let other = unread(
        Path::new("/dev/sdq"),
        &io::Error::from_raw_os_error(5),
        true,
    );
    assert!(other.starts_with("/dev/sdq: "), "{other}");
    assert!(sdq(io::ErrorKind::PermissionDenied, false).contains("needs root"));
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    assert!(untrimmable(&denied, false).ends_with("; run as root"));
    for text in [
        untrimmable(&denied, true),
        untrimmable(&io::Error::from_raw_os_error(5), false),
    ] {
        assert!(!text.contains("run as root"), "{text}");
    }
}

#[test]
fn one_drive() {
    let all = [
        layer("sda1", &["sda"], true, Some(1.0)),
        layer("sda", &[], false, Some(1.02)),
    ];
    let of = |raw: Option<Raw>| conclude(&all, raw.as_ref(), true).0;
    assert_eq!(of(Some(raw(0, 100, 0))), Outcome::Arrives);
    assert_eq!(of(Some(raw(5, 50, 45))), Outcome::Arrives);
    assert_eq!(of(Some(raw(100, 0, 0))), Outcome::Ignored);
    assert_eq!(of(Some(raw(60, 40, 0))), Outcome::Counted);
    assert_eq!(of(None), Outcome::Counted);
    assert_eq!(conclude(&all, None, false).0, Outcome::TooMuch);
}

#[test]
fn discards_that_were_not_sent_or_stopped() {
    let none = [layer("vda", &[], true, Some(0.01))];
    assert_eq!(
        conclude(&none, Some(&raw(1, 0, 0)), true),
        (Outcome::NotSent, None)
    );
    let stop = [
        layer("dm-1", &["dm-0"], true, Some(1.0)),
        layer("dm-0", &["sda"], false, Some(0.9)),
        layer("sda", &[], false, Some(0.0)),
    ];
    assert_eq!(
        conclude(&stop, None, true),
        (Outcome::Stops, Some("dm-0".to_owned()))
    );
    assert_eq!(conclude(&[], None, true).0, Outcome::Unknown);
}

#[test]
fn an_array_that_counts_nothing_itself() {
    let members = |share: f64| {
        [
            layer("md0", &["sda", "sdb"], true, None),
            layer("sda", &[], false, Some(share)),
            layer("sdb", &[], false, Some(share)),
        ]
    };
    assert_eq!(
        conclude(&members(1.0), Some(&raw(0, 9, 0)), true).0,
        Outcome::Arrives
    );
    assert_eq!(
        conclude(&members(0.0), Some(&raw(9, 0, 0)), true).0,
        Outcome::NotSent
    );
}

#[test]
fn counters_that_are_off_prove_nothing_by_themselves() {
    let off = [layer("sda", &[], true, None)];
    assert_eq!(
        conclude(&off, Some(&raw(9, 0, 0)), true).0,
        Outcome::Unknown
    );
    assert_eq!(
        conclude(&off, Some(&raw(0, 9, 0)), true).0,
        Outcome::Arrives
    );
    assert_eq!(conclude(&off, None, true).0, Outcome::Unknown);
}

#[test]
fn unchanged_blocks_break_no_promise_that_was_not_made() {
    use storage::drive::ReadsAs;
    assert!(breaks_promise(Some(ReadsAs::Zeros)) && breaks_promise(None));
    assert!(!breaks_promise(Some(ReadsAs::Anything)));
}

#[test]
fn blocks_are_compared_one_by_one() {
    let written: Vec<u8> = (0..3 * 4096).map(|i| (i % 251) as u8 + 1).collect();
    let mut read = written.clone();
    read[4096..8192].fill(0);
    read[8192] ^= 1;
    let mut found = Raw::default();
    found.add(&written, &read);
    assert_eq!(found, raw(4096, 4096, 4096));
}

#[test]
fn many_more_discards_than_the_probes_prove_nothing_of_it() {
    let all = |share| {
        [
            layer("loop3", &["vda"], true, Some(1.0)),
            layer("vda", &[], false, Some(share)),
        ]
    };
    let of = |raw: Option<Raw>| conclude(&all(150.0), raw.as_ref(), true).0;
    assert_eq!(of(None), Outcome::Unknown);
    assert_eq!(of(Some(raw(100, 0, 0))), Outcome::Unknown);
    assert_eq!(of(Some(raw(0, 100, 0))), Outcome::Arrives);
    assert_eq!(conclude(&all(1.5), None, true).0, Outcome::Counted);
    let proof = Proof {
        path: "/data".to_owned(),
        probe_bytes: PROBE_BYTES,
        fitrim: false,
        layers: all(150.0).to_vec(),
        raw: None,
        raw_missing: None,
        result: Outcome::Unknown,
        stops_at: None,
        summary: String::new(),
        seconds: 1.0,
    };
    let expected = "vda discarded 9.4 GiB meanwhile, many times the probe: unknown whether";
    let said = summary(&proof, &Stack::unknown(Path::new("/data")));
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_file_system_that_never_has_room_is_too_small_and_not_full() {
    let refused = |size_mib: u64, free_mib: u64| {
        let space = Space {
            size_bytes: size_mib << 20,
            available_bytes: free_mib << 20,
            block_bytes: 4096,
        };
        room(Path::new("/data"), space)
            .err()
            .map(|error| error.to_string())
    };
    let small = refused(1040, 1040).unwrap();
    let expected = "the file system of /data is too small: it has 1.0 GiB, and 1.0 GiB always stay \
                    free; use one of at least 2.0 GiB";
    assert_eq!(small, expected);
    assert!(refused(4096, 900).unwrap().contains("free space there"));
    assert_eq!(refused(1100, 1100), None);
}
