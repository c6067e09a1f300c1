//! A policy file, as far as an action.

#![no_main]

use album_fuzz::run;
use album_policy::{Policy, PolicyFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    run(|| {
        let Ok(file) = PolicyFile::from_bytes(input) else { return };
        let again = PolicyFile::from_bytes(&file.to_bytes().expect("bytes")).expect("the same file");
        assert_eq!(again, file);
        let Ok(mut policy) = Policy::new(file) else { return };
        let observation = vec![0.5; policy.manifest().observation_dim()];
        let mut action = vec![0.0; policy.manifest().decision_len()];
        let _ = policy.act(&observation, &mut action);
    });
});
