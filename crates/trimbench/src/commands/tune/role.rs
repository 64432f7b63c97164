//! Writes the advice as variables of the Ansible role in `deploy/ansible`.

use std::path::Path;

use experiments::tune::persist::{self, Identity};
use experiments::tune::{Advice, Policy, Target, Trial};
use record::units::names::shown;
use serde_json::json;

/// The file, with a line end. YAML takes JSON's strings and lists as they are.
pub(super) fn of(target: &Target, advice: &Advice, etc: &Path) -> String {
    let at = shown(&target.mount.mount_point);
    let mut text = format!(
        "# Advised by trimbench tune for {at}.\n\
         # Set:  ansible-playbook -i HOSTS deploy/ansible/play.yml --extra-vars @FILE\n\
         # Back: the same with --extra-vars trimbench_state=absent\n"
    );
    let lines = advice
        .set
        .map_or_else(Vec::new, |trial| variables(target, &trial, etc));
    if lines.iter().all(|line| line.starts_with('#')) {
        text += "# Nothing has to be set.\n";
    }
    for line in &lines {
        text += &format!("{line}\n");
    }
    // A file of comments alone isn't one of variables.
    text += "trimbench_state: present\n";
    text
}

fn variables(target: &Target, trial: &Trial, etc: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let limit = trial.limit_bytes;
    let changed = limit != target.range.now_bytes;
    if changed && persist::limit_rules(target, limit, etc).is_some() {
        let mut serials = Vec::new();
        for drive in persist::identities(&target.drives) {
            match drive {
                Identity::Serial(serial) => serials.push(serial),
                Identity::Name(name) => lines.push(format!(
                    "# udev knows no serial number of {name}: give its ID_SERIAL, or a pattern."
                )),
            }
        }
        lines.push(format!("trimbench_discard_max_bytes: {limit}"));
        lines.push(format!("trimbench_drives: {}", json!(serials)));
    }
    if trial.policy.is_online() != target.is_online() {
        let at = persist::remount_point(target, etc);
        lines.push(match trial.policy.is_online() {
            true => format!("# Mount {} with the option discard.", shown(&at)),
            false => format!("trimbench_nodiscard: {}", json!([at.to_string_lossy()])),
        });
    }
    if trial.policy == Policy::PacedFstrim {
        lines.push("trimbench_timer: true".to_owned());
    }
    lines
}
