//! Names the shared library, so that programs keep to the ABI that they were linked with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtrimbench_throttle.so.1");
}
