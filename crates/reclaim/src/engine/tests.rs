use super::*;

/// One that watches no device, on a directory of the temporary ones.
fn engine(gives_space: bool) -> Engine {
    let on = File::open(std::env::temp_dir()).unwrap();
    let setup = Setup {
        on: on.as_fd(),
        paced: false,
        leaves: &[],
        copies: 1.0,
        work: &Work::new(1 << 30, 8),
        policy: Policy::Adaptive(pace::Goal::default()),
        settles: false,
        gives_space,
        card: None,
        options: &FreerOptions::default(),
    };
    Engine::start(&setup).unwrap().0
}

#[test]
fn a_full_file_system_hurries_only_what_gives_it_space() {
    assert!(engine(true).space.is_some());
    assert_eq!(engine(false).space, None);
}
