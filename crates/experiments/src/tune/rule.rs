//! The udev rules that set a limit at the next starts.

use std::fs;

use crate::tune::target::Target;

/// The file that the rules belong in.
pub const RULES: &str = "/etc/udev/rules.d/61-trimbench-discard.rules";

/// Returns the rules that set this limit, a line for each drive. `None` if the drives start with
/// it by themselves.
pub fn rules(target: &Target, limit_bytes: u64) -> Option<String> {
    let line = |drive: &String| {
        let number = fs::read_to_string(format!("/sys/class/block/{drive}/dev")).ok();
        let data =
            number.and_then(|n| fs::read_to_string(format!("/run/udev/data/b{}", n.trim())).ok());
        rule(&key(drive, data.as_deref()), limit_bytes)
    };
    let needed = limit_bytes < target.range.most_bytes();
    needed.then(|| target.drives.iter().map(line).collect())
}

fn rule(key: &str, limit_bytes: u64) -> String {
    format!(
        "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {key}, \
         ATTR{{queue/discard_max_bytes}}=\"{limit_bytes}\"\n"
    )
}

/// How udev recognises a drive: by its model and serial number, from udev's own notes of it, or by
/// its kernel name, which another drive may get.
fn key(drive: &str, udev_data: Option<&str>) -> String {
    let mut lines = udev_data.into_iter().flat_map(str::lines);
    let serial = lines.find_map(|line| line.strip_prefix("E:ID_SERIAL="));
    match serial.filter(|serial| !serial.is_empty() && is_plain(serial)) {
        Some(serial) => format!("ENV{{ID_SERIAL}}==\"{serial}\""),
        None => format!("KERNEL==\"{drive}\""),
    }
}

/// Whether a text means itself in a udev rule: no quotes, no pattern, no substitution.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.:,+/ ".contains(c);
    text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_the_serial_number_and_else_the_kernel_name() {
        let known = Some("S:disk/by-id/x\nE:ID_SERIAL=Samsung_SSD_870_EVO_S6\n");
        assert!(
            rule(&key("sda", known), 8 << 20).ends_with(
                "ENV{ID_SERIAL}==\"Samsung_SSD_870_EVO_S6\", ATTR{queue/discard_max_bytes}=\"8388608\"\n"
            )
        );
        assert_eq!(key("sdb", None), "KERNEL==\"sdb\"");
    }

    #[test]
    fn a_serial_number_that_could_break_out_of_its_quotes_is_not_taken() {
        let odd = Some("E:ID_SERIAL=a\",RUN+=\"rm");
        assert_eq!(key("sda", odd), "KERNEL==\"sda\"");
    }
}
