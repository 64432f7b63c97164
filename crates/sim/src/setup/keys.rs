//! The settings of a run by name.

use crate::keys::{Key, blocks, duration, number, share, show_duration, size, span};
use crate::policy::PolicyKind;
use crate::volume::AllocatorKind;

use super::Setup;

fn shown(value: impl ToString) -> String {
    value.to_string()
}

fn small(text: &str) -> Result<u32, String> {
    number(text, 0, 4096).map(|n| n as u32)
}

fn rate(text: &str) -> Result<f64, String> {
    match text {
        "0" => Ok(0.0),
        _ => units::parse_rate(text).map_err(|e| e.to_string()),
    }
}

fn part(text: &str) -> Result<f64, String> {
    match share(text)? {
        part if part <= 0.95 => Ok(part),
        _ => Err(format!("'{text}': give at most 95%")),
    }
}

fn allocator(text: &str) -> Result<Option<AllocatorKind>, String> {
    match (text, AllocatorKind::named(text)) {
        ("auto", _) => Ok(None),
        (_, Some(kind)) => Ok(Some(kind)),
        _ => {
            let names = AllocatorKind::ALL.map(AllocatorKind::name).join(", ");
            Err(format!(
                "'{text}' is not a way of allocating: give auto, {names}"
            ))
        }
    }
}

/// Every setting of a run but drive, policy and workload.
pub const SETTINGS: &[Key<Setup>] = crate::keys::keys! { Setup:
    "size" size "bytes that the workload has": blocks, units::bytes_exact;
    "files" files "files that the workload has": |t| number(t, 1, 10_000_000), shown;
    "volume" volume "bytes of the volume; 0: twice `size`, at least 16G": size, units::bytes_exact;
    "fill" fill "share of the volume that other files use": part, units::percent_exact;
    "allocator" allocator "whose way of allocating: auto, ffs, ext4, xfs or btrfs": allocator, |a: Option<AllocatorKind>| a.map_or("auto".to_owned(), |a| a.name().to_owned());
    "readers" readers "reads of 4 KiB in flight (closed loop)": small, shown;
    "reads-per-s" reads_per_s "reads a second at random times (open loop); 0: none": rate, shown;
    "writers" writers "writes of 4 KiB in flight": small, shown;
    "syncers" syncers "programs that write 4 KiB and sync": small, shown;
    "baseline" baseline "time before the deletion": duration, show_duration;
    "recovery" recovery "time after the last discard": duration, show_duration;
    "limit" limit "longest wait for the last discard": span, show_duration;
    "length" length "time of a workload that goes on and on": span, show_duration;
    "pause" pause "pause of such a workload": duration, show_duration;
    "interval" interval "a row of the record": span, show_duration;
    "per-io" per_io "the host's time for each foreground I/O": duration, show_duration;
    "per-discard" per_discard "the kernel's time between two discards": duration, show_duration;
    "per-file" per_file "the deleter's time for each file": duration, show_duration;
    "commit-time" commit_time "time of a commit beside its flush": duration, show_duration;
    "commit-every" commit_every "longest time from a deletion to its commit": span, show_duration;
    "seed" seed "decides all that is random": |t| number(t, 0, u64::MAX), shown;
    more Key {
        name: "flash",
        about: "flash behind the drive: off, or PAGE PAGES_IN_BLOCK SPARE% greedy|fifo",
        set: |s, text| {
            s.flash = match text {
                "off" => None,
                _ => Some(
                    text.parse()
                        .map_err(|e: ssd::flash::GeometryError| e.to_string())?,
                ),
            };
            Ok(())
        },
        show: |s| s.flash.map_or("off".to_owned(), |flash| flash.to_string()),
    };
};

/// Every policy with its parameters and their usual values, as text for people.
pub fn describe_policies() -> String {
    let mut text = String::new();
    for kind in PolicyKind::ALL {
        text += &format!("{:<12} {}\n", kind.name(), kind.about());
        let usual = kind.usual();
        for name in kind.parameters() {
            if let Some(key) = crate::keys::find(crate::policy::PARAMETERS, name) {
                let value = (key.show)(&usual);
                text += &format!("  {:<18}{:<12}{}\n", key.name, value, key.about);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::Drives;
    use crate::workload::WorkloadKind;

    #[test]
    fn each_setting_takes_what_it_shows() {
        let card = ssd::profiles::by_name("ideal").unwrap().clone();
        let drives = Drives::single(card);
        let mut setup = Setup::new(drives, PolicyKind::None, WorkloadKind::DropFile);
        setup.reads_per_s = 100.0;
        setup.fill = 0.25;
        setup.flash = Some("16k 256 7% greedy".parse().unwrap());
        let mut again = setup.clone();
        for key in SETTINGS {
            let text = (key.show)(&setup);
            assert_eq!((key.set)(&mut again, &text), Ok(()), "{} {text}", key.name);
        }
        assert_eq!(again, setup);
        let key = crate::keys::find(SETTINGS, "size").unwrap();
        assert!((key.set)(&mut again, "5").is_err());
    }
}
