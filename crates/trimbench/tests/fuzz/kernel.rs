//! Parsers of what kernels, drives and administrators write.

use std::path::Path;

use diagnose::inspect::{Now, Options, Scope, inspect};
use linux::SysRoot;
use storage::drive::{Ata, Nvme, Scsi};
use testkit::Machine;

use super::Target;

const MOUNTINFO: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n\
    36 22 0:31 /@home /home rw,noatime - btrfs /dev/mapper/vg-home rw,ssd,discard=async,subvol=/@home\n\
    40 22 8:17 / /mnt/a\\040b rw master:2 - xfs /dev/sdb1 rw,attr2,inode64\n\
    41 22 0:40 / /o rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w\n";
const FSTAB: &[u8] = b"# a comment\nUUID=0a-1b / ext4 defaults,discard 0 1\n\
    LABEL=x\\040y /b\\040c xfs noauto,x-systemd.automount 0 2\n/dev/sda2 none swap sw 0 0\n";
const CRYPTTAB: &[u8] = b"# name device key options\nroot UUID=0a-1b none luks,discard\nswap /dev/sda2 /dev/urandom swap\n";
const STAT: &[u8] = b"   50360     8712  4997338    14734    10992    13835  1409120     2952        7     5968    17987     4997       48   373056      267     1034       33\n";
const TABLE: &[u8] = b"luks: 0 4096 crypt aes-xts-plain64 :64:logon:cryptsetup:0a 0 259:3 32768 1 allow_discards\n\
    vg-pool-tpool: 0 8192 thin-pool 253:1 253:0 128 0 1 no_discard_passdown\nvg-lv: 0 8192 linear 8:0 2048\n";
const TIMER: &[u8] = b"[Unit]\nConditionVirtualization=!container\n[Timer]\nOnCalendar=\nOnCalendar=Mon *-*-* 00:00:00\n\
    OnCalendar=weekly\nRandomizedDelaySec=1h 40min\nFixedRandomDelay=true\nPersistent=true\n";
const SERVICE: &[u8] = b"[Service]\nType=oneshot\nExecStart=/sbin/fstrim --listed-in /etc/fstab:/proc/self/mountinfo --verbose \\\n  --quiet-unsupported\n";
const CRONTAB: &[u8] = b"SHELL=/bin/sh\n17 3 * * 0 root /sbin/fstrim -v / >>/var/log/trim 2>&1\n@weekly root trimbench fstrim --all\n";
const LVM: &[u8] = b"devices {\n\t# issue_discards = 0\n\tissue_discards = 1\n}\n";
const TRACE: &[u8] = b"            sync-2041    [001] .....  1736.055027: block_bio_queue: 7,0 DS 43040 + 32 [sync]\n\
    \x20  a-b [1] c-22      [001] ..s..  1.5: block_rq_complete: 7,0 D () 1 + 2 [0]\n\
    \x20          rustc-1649    [001] .....  1733.438833: <stack trace>\n => submit_bio_wait\nCPU:1 [LOST 23 EVENTS]\n";
const TASK: &[u8] =
    b"44 (a) b (c) D 2 0 0 0 -1 69238880 0 0 0 0 7 11 0 0 0 -20 1 0 34 0 0 18446744073709551615 0";
const CALENDARS: &[&[u8]] = &[
    b"weekly",
    b"Mon *-*-* 00:00:00",
    b"*-*-1..7 18:00",
    b"Sat,Sun 2026-*-01/3 4:05:06",
    b"hourly",
    b"*:0/15",
    b"Mon..Fri *-12~03 10:00 UTC",
];
const CAPACITY: &[u8] = &[
    0, 0, 0, 0, 0x74, 0x70, 0x6d, 0xaf, 0, 0, 2, 0, 0, 3, 0xc0, 0, 0, 0, 0, 0,
];
const LIMITS: &[u8] = &[
    0, 0xb0, 0, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 1, 0,
    0, 0, 8, 0x80, 0, 0, 0x10,
];
const PROVISIONING: &[u8] = &[0, 0xb2, 0, 4, 0, 0xe4, 2, 0];
/// A page as a drive fills it: every byte has some value.
const PAGE: [u8; 4096] = {
    let mut page = [0; 4096];
    let mut at = 0;
    while at < page.len() {
        page[at] = (at * 7 % 251) as u8;
        at += 1;
    }
    page
};

/// These parsers.
pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "mountinfo",
        cost: 1,
        samples: &[MOUNTINFO],
        parse: |input| {
            for mount in linux::mounts::parse(input) {
                let _ = (mount.options(), mount.read_only());
            }
        },
    },
    Target {
        name: "fstab",
        cost: 1,
        samples: &[FSTAB, MOUNTINFO],
        parse: |input| {
            let _ = linux::fstab::parse(input);
            let _ = linux::fstab::noted_options(input, Path::new("/a"));
        },
    },
    Target {
        name: "crypttab",
        cost: 1,
        samples: &[CRYPTTAB, FSTAB],
        parse: |input| {
            for entry in linux::crypttab::parse(&String::from_utf8_lossy(input)) {
                let line = entry.with_discard();
                let again = linux::crypttab::parse(&line);
                assert!(again.iter().all(|one| one.allows_discards()), "{line}");
            }
        },
    },
    Target {
        name: "stat",
        cost: 1,
        samples: &[STAT],
        parse: |input| {
            if let Some(counters) = linux::stats::Counters::parse(input) {
                let _ = counters.since(&linux::stats::Counters::default());
                let _ = linux::stats::Counters::default().since(&counters);
            }
        },
    },
    Target {
        name: "trace",
        cost: 1,
        samples: &[TRACE],
        parse: |input| {
            for line in String::from_utf8_lossy(input).lines() {
                linux::tracefs::parse(line);
            }
        },
    },
    Target {
        name: "task_stat",
        cost: 1,
        samples: &[TASK],
        parse: |input| {
            let _ = linux::tasks::Stat::parse(input);
        },
    },
    Target {
        name: "dmsetup_table",
        cost: 1,
        samples: &[TABLE],
        parse: |input| {
            let _ = linux::dm::parse(&String::from_utf8_lossy(input));
        },
    },
    Target {
        name: "calendar",
        cost: 1,
        samples: CALENDARS,
        parse: |input| {
            let text = String::from_utf8_lossy(input);
            if let Some(calendar) = diagnose::inspect::policy::Calendar::parse(&text) {
                for now in [0, 1_795_485_600, -1, i64::from(u32::MAX)] {
                    let next = calendar.next(now);
                    assert!(
                        next.is_none_or(|next| next > now),
                        "{text}: {next:?} after {now}"
                    );
                }
            }
        },
    },
    Target {
        name: "ata_identify",
        cost: 1,
        samples: &[&PAGE, b"0040 3fff c837 0010"],
        parse: |input| {
            let _ = Ata::parse(input);
            let _ = Ata::parse_words(&String::from_utf8_lossy(input));
        },
    },
    Target {
        name: "nvme_identify",
        cost: 1,
        samples: &[&PAGE],
        parse: |input| {
            // The three pages are cut out of one input.
            let third = input.len() / 3;
            let _ = Nvme::parse(input, input, Some(input));
            let _ = Nvme::parse(&input[..third], &input[third..], Some(&input[2 * third..]));
            let _ = Nvme::parse(input, &PAGE, None);
            let _ = Nvme::parse(&PAGE, input, Some(input));
        },
    },
    Target {
        name: "scsi_vpd",
        cost: 1,
        samples: &[CAPACITY, LIMITS, PROVISIONING],
        parse: |input| {
            let _ = Scsi::parse(Some(input), Some(input), Some(input));
        },
    },
    Target {
        name: "machine",
        cost: 50,
        samples: &[
            MOUNTINFO, FSTAB, CRYPTTAB, TABLE, TIMER, SERVICE, CRONTAB, LVM, STAT, LIMITS,
        ],
        parse: machine,
    },
];

/// Inspects a machine whose files all have this content in turn: units, cron, LVM's settings,
/// queues and pages are read by parsers that no other crate can call.
fn machine(input: &[u8]) {
    let machine = Machine::new("22 1 254:0 / / rw - ext4 /dev/dm-0 rw,discard\n");
    machine.device("pci/host0/target0/block/sda", "8:0", Some(1 << 30));
    machine.device("virtual/block/dm-0", "254:0", Some(1 << 30));
    machine.slave("virtual/block/dm-0", "pci/host0/target0/block/sda");
    machine.link("etc/systemd/system/timers.target.wants/fstrim.timer", "x");
    let lib = "usr/lib/systemd/system";
    for (file, text) in [("fstrim.timer", TIMER), ("fstrim.service", SERVICE)] {
        machine.write(&format!("{lib}/{file}"), &String::from_utf8_lossy(text));
    }
    let files = [
        "proc/self/mountinfo",
        "etc/fstab",
        "etc/crypttab",
        "etc/crontab",
        "etc/cron.d/trim",
        "etc/lvm/lvm.conf",
        "dmsetup-table",
        "usr/lib/systemd/system/fstrim.timer",
        "usr/lib/systemd/system/fstrim.service",
        "sys/devices/virtual/block/dm-0/dm/uuid",
        "sys/devices/virtual/block/dm-0/dm/name",
        "sys/devices/pci/host0/target0/block/sda/queue/discard_max_bytes",
        "sys/devices/pci/host0/target0/block/sda/size",
        "identify/sda/scsi-b0",
        "identify/sda/ata",
    ];
    // One file of them, by the input itself, so that each input costs one inspection.
    let sum = input.iter().map(|&byte| usize::from(byte)).sum::<usize>();
    std::fs::create_dir_all(
        machine
            .root()
            .join(files[sum % files.len()])
            .parent()
            .unwrap(),
    )
    .unwrap();
    std::fs::write(machine.root().join(files[sum % files.len()]), input).unwrap();
    let options = Options {
        now: Now {
            unix_s: 1_795_485_600,
            offset_s: 3600,
        },
        privileged: true,
        ..Options::default()
    };
    let sys = SysRoot::at(machine.root());
    for asked in [Scope::All, Scope::Path("/".into())] {
        if let Ok(found) = inspect(&sys, &asked, &options) {
            let _ = serde_json::to_string(&found).unwrap();
        }
    }
}
