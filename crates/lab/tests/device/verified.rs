//! fio writes and verifies (crc32c) beside trims, and what is trimmed reads as
//! zeros. Of a discard that comes late fio sees too little to rely on; the random
//! operations find that.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::common::{Bench, NAME, cannot, soak_or};
use crate::gate::beside;

const MIB: u64 = 1 << 20;

/// Runs one round. The trims end where the verified region begins, so that a trim of too much shows
/// there. That region is trimmed before, so that a lost write doesn't leave the data that an
/// earlier round verified.
fn round(bench: &Bench) -> Output {
    let mut fio = Command::new("timeout");
    fio.args([
        "120",
        "fio",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=8",
    ])
    .arg(format!("--filename={}", bench.device().display()))
    .args([
        "--verify_fatal=1",
        "--verify_state_save=0",
        "--randrepeat=0",
    ])
    .args(["--exitall_on_error=1", "--output=/dev/null"]);
    let jobs = [
        "fill --rw=write --bs=1M --size=8M",
        "clear --rw=trim --bs=32M --offset=8M --size=64M",
        "verified --stonewall --rw=randwrite --bsrange=4k-64k --offset=8M --size=64M \
         --verify=crc32c",
        // Whole passes: on a busy machine no time is long enough for one.
        "trims --rw=randtrim --bs=256k --size=8M --loops=24",
        "trimmed --stonewall --rw=read --bs=64k --size=8M --verify=pattern --verify_pattern=0x00",
    ];
    for job in jobs {
        fio.args(format!("--name={job}").split_whitespace());
    }
    fio.output().unwrap()
}

/// Lists the data that the trims have left: the place and the first bytes.
fn left(bench: &Bench) -> String {
    let device = File::open(bench.device()).unwrap();
    let mut data = vec![0; 8 * MIB as usize];
    device.read_exact_at(&mut data, 0).unwrap();
    let blocks = data.chunks(4096).enumerate();
    let left = blocks.filter(|(_, block)| block.iter().any(|&byte| byte != 0));
    let told = left.map(|(i, block)| format!("{} KiB: {:02x?}", 4 * i, &block[..16]));
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_fio_wrote_is_there_beside_trims() {
    if cannot(&["fio"]) {
        return;
    }
    let _turn = beside();
    let drives: [(&str, &[&str]); 2] = [
        ("ideal", &[]),
        ("samsung-870-evo-2tb", &["a=300us", "write.latency=200us"]),
    ];
    for given in drives {
        let bench = Bench::new(given.0, given.1, 96, |_| {});
        let end = Instant::now() + soak_or(Duration::from_secs(8)) / drives.len() as u32;
        let mut rounds = 0;
        while rounds == 0 || Instant::now() < end {
            let output = round(&bench);
            let said = String::from_utf8_lossy(&output.stderr);
            let status = output.status;
            assert!(
                status.success(),
                "{given:?}, round {rounds}, {status}: {said}\nleft:\n{}",
                left(&bench)
            );
            rounds += 1;
        }
        let stats = bench.lab.stats(NAME).unwrap();
        let [read, write, _, discard, _] = &stats.kinds[..] else {
            panic!("{stats:?}")
        };
        eprintln!("{given:?}: {rounds} rounds, {} discards", discard.commands);
        assert!(read.bytes >= rounds * 72 * MIB && write.bytes >= rounds * 72 * MIB);
        assert!(discard.commands > rounds * 32, "{stats:?}");
    }
}

#[test]
fn fio_finds_wrong_data_of_every_kind() {
    if cannot(&["fio"]) {
        return;
    }
    let _turn = beside();
    for fault in [
        "read zeros rate 1%",
        "read flip rate 1%",
        "read holes rate 1%",
        "write lost rate 1%",
        "discard nothing",
        "discard neighbour 4k",
    ] {
        let bench = Bench::new("ideal", &[], 96, |_| {});
        bench.lab.add_fault(NAME, &fault.parse().unwrap()).unwrap();
        // A trim too many is seen if it comes between a write and its verification:
        // on a busy machine not in every round.
        let mut rounds = (0..10).map(|_| round(&bench));
        let Some(output) = rounds.find(|output| !output.status.success()) else {
            panic!("{fault} was not found");
        };
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{fault}: {}", said.lines().next().unwrap_or_default());
        assert!(
            said.contains("verify: bad") || said.contains("bad pattern"),
            "{fault}: {said}"
        );
    }
}
