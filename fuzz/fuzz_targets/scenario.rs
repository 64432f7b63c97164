#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| trimbench_fuzz::parse("scenario", input));
