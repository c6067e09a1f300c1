//! Observations that `album act` reads from its standard input.

#![no_main]

use std::sync::{LazyLock, Mutex};

use album_fuzz::{base, run};
use album_policy::Policy;
use libfuzzer_sys::fuzz_target;

static POLICY: LazyLock<Mutex<Policy>> =
    LazyLock::new(|| Mutex::new(Policy::from_bytes(&base::policy("iql")).expect("a policy")));

fuzz_target!(|input: &[u8]| {
    run(|| {
        let mut policy = POLICY.lock().expect("a policy");
        let _ = album::act::act(&mut policy, &mut &*input, &mut std::io::sink());
    });
});
