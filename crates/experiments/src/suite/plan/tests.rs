use super::*;
use proptest::prelude::*;

fn lab(size_bytes: u64, slower: f64) -> Drive {
    Drive::Lab {
        profile: "ideal".to_owned(),
        size_bytes,
        slower,
    }
}

fn asked(cells: &[&str]) -> Asked {
    Asked {
        cells: cells.iter().filter_map(|name| Cell::named(name)).collect(),
        ..Asked::default()
    }
}

#[test]
fn cells_take_turns_and_each_round_begins_elsewhere() {
    let names = [
        "ext4/discard/discard",
        "xfs/nodiscard/nodiscard",
        "btrfs/discard/off",
    ];
    let plan = Plan::new(&asked(&names), 64 * GIB).unwrap();
    let turns = plan.turns();
    assert_eq!(turns.len(), 9);
    let firsts: Vec<String> = turns
        .iter()
        .step_by(3)
        .map(|(_, cell)| cell.to_string())
        .collect();
    assert_eq!(firsts, names);
    for name in names {
        assert_eq!(
            turns
                .iter()
                .filter(|(_, cell)| cell.to_string() == name)
                .count(),
            3
        );
    }
}

#[test]
fn a_device_that_is_too_small_is_refused_with_what_fits() {
    let small = Plan::new(&asked(&["ext4/discard/discard"]), GIB).unwrap_err();
    assert!(
        small.is_usage() && small.to_string().contains("smaller size"),
        "{small}"
    );
    let huge = Asked {
        size_bytes: Some(64 * GIB),
        ..asked(&["ext4/discard/discard"])
    };
    Plan::new(&huge, 16 * GIB).unwrap_err();
}

#[test]
fn quick_files_are_as_large_as_the_drive_is_fast() {
    let plan = |discards_per_s, device_bytes| {
        let request = Asked {
            quick: true,
            discards_per_s,
            ..asked(&["ext4/discard/discard"])
        };
        let plan = Plan::new(&request, device_bytes).unwrap();
        let drive = lab(device_bytes, 1.0);
        (plan.cell_bytes(), plan.too_fast(&drive, discards_per_s))
    };
    assert_eq!(plan(Some(200e6), 32 * GIB), (512 * MIB, None));
    assert_eq!(plan(Some(5e9), 32 * GIB), (4 * GIB, None));
    // What fits shows nothing: that is printed beforehand, and nothing larger is written.
    let (bytes, why) = plan(Some(5e9), 16 * GIB);
    let why = why.unwrap();
    assert_eq!(bytes, 512 * MIB);
    assert!(
        why.contains("in 0.11 s") && why.ends_with("give --set size=3G, or --set lab-slower=5"),
        "{why}"
    );
    let why = plan(None, 16 * GIB).1.unwrap();
    assert!(why.contains("a drive that discards 512 MiB"), "{why}");
    assert!(why.contains("(--set size=1024M)"), "{why}");
}

#[test]
fn a_hint_is_what_the_drive_can_have() {
    let request = Asked {
        quick: true,
        ..asked(&["ext4/discard/discard"])
    };
    let plan = Plan::new(&request, 8 * GIB).unwrap();
    let why = |drive: Drive, rate: f64| plan.too_fast(&drive, Some(rate)).unwrap();
    // 23 GiB don't fit into 8 GiB, and it is twice as slow as its profile already.
    let slower = why(lab(8 * GIB, 2.0), 50e9);
    assert!(slower.ends_with(": give --set lab-slower=94"), "{slower}");
    let neither = why(lab(8 * GIB, 500.0), 50e9);
    assert!(neither.contains("files of 24.0 GiB"), "{neither}");
    assert!(!neither.contains("--"), "{neither}");
    let never = why(lab(8 * GIB, 1.0), f64::INFINITY);
    assert!(never.ends_with("take no time"), "{never}");
    let file = |gib: u64| Drive::File {
        directory: "/".to_owned(),
        size_bytes: gib * GIB,
    };
    let more = why(file(64), 50e9);
    assert!(more.ends_with(": give --set size=24G"), "{more}");
    let larger = why(file(20), 50e9);
    assert!(larger.ends_with("a larger drive"), "{larger}");
}

#[test]
fn only_runs_need_slow_discards() {
    let request = Asked {
        steps: vec![Step::Rm],
        quick: true,
        ..asked(&["ext4/discard/discard"])
    };
    let plan = Plan::new(&request, 16 * GIB).unwrap();
    assert_eq!(
        [Some(5e9), None].map(|rate| plan.too_fast(&lab(16 * GIB, 1.0), rate)),
        [None, None]
    );
}

#[test]
fn chosen_steps_begin_with_mkfs() {
    let some = Asked {
        steps: vec![Step::Fstrim, Step::Rm, Step::RunFstrim],
        ..asked(&["ext4/discard/discard", "ext4/discard/nodiscard"])
    };
    let plan = Plan::new(&some, 64 * GIB).unwrap();
    let of = |name: &str| plan.steps_of(&Cell::named(name).unwrap());
    assert_eq!(
        of("ext4/discard/discard"),
        [Step::Mkfs, Step::Rm, Step::Fstrim]
    );
    assert_eq!(of("ext4/discard/nodiscard").last(), Some(&Step::RunFstrim));
}

#[test]
fn without_discards_removed_files_stay_on_the_drive() {
    let stored = |name: &str, steps: &[Step]| {
        let request = Asked {
            steps: steps.to_vec(),
            size_bytes: Some(GIB),
            ..asked(&[name])
        };
        let plan = Plan::new(&request, 64 * GIB).unwrap();
        (plan.stored_bytes() - plan.foreground_bytes() - 64 * MIB) / GIB
    };
    assert_eq!(stored("ext4/discard/discard", &[]), 1);
    assert_eq!(stored("ext4/discard/nodiscard", &[]), 3);
    assert_eq!(stored("ext4/discard/nodiscard", &[Step::Fstrim]), 1);
    let runs = |steps: &[Step]| {
        let request = Asked {
            steps: steps.to_vec(),
            ..asked(&["ext4/discard/discard"])
        };
        Plan::new(&request, 64 * GIB).unwrap().runs()
    };
    assert!(runs(&[Step::Rm, Step::Run]) && !runs(&[Step::Rm]));
}

#[test]
fn the_estimate_counts_every_creation() {
    let one = Asked {
        repeats: Some(1),
        size_bytes: Some(GIB),
        ..asked(&["ext4/discard/discard"])
    };
    let discards = Plan::new(&one, 64 * GIB).unwrap();
    // Three creations; two runs with their readers' files.
    let expected = 3 * GIB + 2 * (GIB + GIB / 4);
    assert_eq!(discards.estimate().written_bytes, expected);
    let more = Asked {
        repeats: Some(2),
        ..one
    };
    let twice = Plan::new(&more, 64 * GIB).unwrap();
    assert_eq!(twice.estimate().written_bytes, 2 * expected);
}

#[test]
fn a_refusal_adds_up() {
    let request = Asked {
        size_bytes: Some(20 * GIB),
        ..asked(&["ext4/discard/discard"])
    };
    let why = Plan::new(&request, 4 * GIB).unwrap_err().to_string();
    let told = "4.0 GiB is too small: 64 files of 320 MiB (20.0 GiB), a file of 1.0 GiB for \
                the readers, and 1.2 GiB that stay free or that the file system takes need \
                22.2 GiB;";
    assert!(why.starts_with(told), "{why}");
}

proptest! {
    #[test]
    fn a_plan_fits_its_device(device in 0u64..1 << 44, files in 1u32..2000, quick: bool) {
        let request = Asked { files: Some(files), quick, ..asked(&["ext4/discard/discard"]) };
        if let Ok(plan) = Plan::new(&request, device) {
            prop_assert!(plan.cell_bytes() < device);
            prop_assert!(plan.writers <= plan.files && plan.file_bytes >= MIB);
        }
    }
}
