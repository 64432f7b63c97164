//! The service and the timer of systemd, as text.

/// What marks the units that are ours to overwrite.
pub(super) const MARK: &str = "# Written by trimbench fstrim --install-timer";

/// The name of both.
pub(super) const NAME: &str = "trimbench-fstrim";

/// Runs a command line. What keeps a service from reaching the devices and the
/// mounts that it trims is left out (PrivateDevices, ProtectSystem).
pub(super) fn service(command: &[String]) -> String {
    let command: Vec<String> = command.iter().map(|word| in_unit(word)).collect();
    format!(
        "{MARK}\n\
         [Unit]\n\
         Description=Trim mounted file systems without stalling anybody\n\
         Documentation=man:trimbench-fstrim(1) man:fstrim(8)\n\
         ConditionVirtualization=!container\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={}\n\
         # Stopped, it goes on the next time.\n\
         SuccessExitStatus=129 130 143\n\
         StateDirectory=trimbench/fstrim\n\
         StateDirectoryMode=0700\n\
         PrivateNetwork=yes\n\
         ProtectKernelModules=yes\n\
         MemoryDenyWriteExecute=yes\n",
        command.join(" ")
    )
}

/// Every week, and not on all machines at once: each at a time of its own within
/// half a day, the same every week.
pub(super) fn timer() -> String {
    format!(
        "{MARK}\n\
         [Unit]\n\
         Description=Trim mounted file systems once a week\n\
         Documentation=man:trimbench-fstrim(1)\n\
         ConditionVirtualization=!container\n\
         \n\
         [Timer]\n\
         OnCalendar=weekly\n\
         RandomizedDelaySec=12h\n\
         FixedRandomDelay=true\n\
         AccuracySec=1min\n\
         Persistent=true\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n"
    )
}

/// A word of a command line, as systemd.service(5) reads it.
fn in_unit(word: &str) -> String {
    let escaped = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%$@+".contains(c);
    if !escaped.is_empty() && escaped.chars().all(plain) {
        return escaped;
    }
    let escaped = escaped.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_systemd() {
        assert_eq!(in_unit("/usr/bin/trimbench"), "/usr/bin/trimbench");
        assert_eq!(in_unit("10%"), "10%%");
        assert_eq!(in_unit("/with space"), "\"/with space\"");
        assert_eq!(in_unit("a\"b$\\"), "\"a\\\"b$$\\\\\"");
        assert_eq!(in_unit(""), "\"\"");
    }

    #[test]
    fn both_are_marked_and_say_when_and_what() {
        let service = service(&["/bin/trimbench".to_owned(), "fstrim".to_owned()]);
        assert!(service.contains("ExecStart=/bin/trimbench fstrim\n"));
        for unit in [service, timer()] {
            assert!(unit.starts_with(MARK) && unit.contains("[Unit]"));
        }
        assert!(timer().contains("FixedRandomDelay=true\n"));
    }
}
