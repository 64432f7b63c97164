//! How long `inspect --all` takes on a recorded machine with 200 mounts and 64 devices.

#![allow(clippy::unwrap_used, missing_docs)]

use std::time::Instant;

use diagnose::inspect::{Now, Options, Scope, inspect};
use linux::SysRoot;
use testkit::Machine;

const DRIVES: u32 = 64;
const MOUNTS: u32 = 200;
const ROUNDS: usize = 20;

fn main() {
    let mut mounts = String::new();
    let mut fstab = String::new();
    for mount in 0..MOUNTS {
        let number = 100 + mount;
        mounts += &format!("{mount} 0 259:{number} / /m{mount} rw - ext4 /dev/p{mount} rw\n");
        fstab += &format!("/dev/p{mount} /m{mount} ext4 defaults 0 2\n");
    }
    let machine = Machine::new(&mounts);
    machine.write("etc/fstab", &fstab);
    for drive in 0..DRIVES {
        let place = format!("pci/nvme/nvme{drive}/nvme{drive}n1");
        machine.device(&place, &format!("259:{drive}"), Some(1 << 30));
        for mount in (drive..MOUNTS).step_by(DRIVES as usize) {
            machine.device(
                &format!("{place}/p{mount}"),
                &format!("259:{}", 100 + mount),
                None,
            );
        }
    }
    let lib = "usr/lib/systemd/system";
    machine.write(
        &format!("{lib}/fstrim.timer"),
        "[Timer]\nOnCalendar=weekly\n",
    );
    machine.write(
        &format!("{lib}/fstrim.service"),
        "[Service]\nExecStart=/sbin/fstrim -A\n",
    );
    machine.link("etc/systemd/system/timers.target.wants/fstrim.timer", "x");
    let sys = SysRoot::at(machine.root());
    let options = Options {
        now: Now {
            unix_s: 1_795_485_600,
            offset_s: 0,
        },
        privileged: true,
        ..Options::default()
    };
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let found = inspect(&sys, &Scope::All, &options).unwrap();
            assert_eq!((found.stacks.len(), found.drives.len()), (200, 64));
            started.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "inspect --all, {MOUNTS} mounts, {DRIVES} drives: median {:.1} ms, worst {:.1} ms",
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
}
