//! Names the shared library and the version of its symbols, so that programs keep to the ABI that they
//! were linked with.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let arguments = [
        "-Wl,-soname,libtrimbench_throttle.so.1",
        // Each symbol has the soname as its version. rustc's own version script allows no other one, and
        // only GNU's linker gives versions without one.
        "-Wl,--default-symver",
        "-fuse-ld=bfd",
    ];
    for argument in arguments {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
