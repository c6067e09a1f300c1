//! A NumPy array.

#![no_main]

use album_data::read_npy;
use album_fuzz::{file, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    run(|| {
        if let Ok(array) = read_npy(file("x.npy", input)) {
            assert_eq!(array.len(), array.shape.iter().product::<usize>());
            let _ = array.clone().into_integers();
            let _ = array.clone().into_f32();
            let _ = array.clone().into_bools();
            let _ = array.into_floats();
        }
    });
});
