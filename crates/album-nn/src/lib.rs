//! The network engine of album: multi-layer perceptrons in `f32`, a tape that differentiates losses built
//! from them, Adam, and a thread pool.
//!
//! The unit of work is a whole network applied to a batch. [`Tape::apply`] runs it with hand-written kernels;
//! everything around it (a hinge, a mean, a sum of terms) is arithmetic on [`Var`]s, so that a loss reads
//! like its equation:
//!
//! ```
//! use album_nn::{Adam, Matrix, Mlp, MlpSpec, Pool, Tape};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let mut v_net = Mlp::new(MlpSpec::new(2, &[32, 32], 1).layer_norm(true), &mut rng);
//! let mut adam = Adam::new(&v_net, 1e-3);
//! let mut tape = Tape::new(&Pool::new(2));
//!
//! let states = Matrix::from_vec(3, 2, vec![0.0, 0.1, 0.5, -0.2, -1.0, 1.0]);
//! let y = Matrix::from_vec(3, 1, vec![-1.0, 0.0, 2.0]);
//! let mut losses = Vec::new();
//! for _ in 0..200 {
//!     let tape = tape.begin();
//!     let v = tape.apply(&v_net, tape.constant(&states));
//!     let y = tape.constant(&y);
//!     // push V down everywhere, but above its targets: omega * E[V] + lambda * E[[y - V]_+]
//!     let loss = 0.1 * v.mean() + 1.0 * (y - v).relu().mean();
//!     losses.push(loss.item());
//!     let gradients = loss.backward();
//!     adam.step(&mut v_net, &gradients);
//! }
//! assert!(losses[199] < losses[0]);
//! ```
//!
//! # Guarantees
//!
//! * Results do not depend on the number of threads: every entry of a product is one chain of
//!   multiply-adds in index order, and no sum is split between threads. The products are also the same on
//!   AVX2, AVX-512 and NEON, which are chosen when the program starts. Functions of the tape such as
//!   [`Var::exp`] and [`Var::tanh`] are the platform's: their last digits may differ between platforms.
//! * An output row depends only on its input row, not on the batch around it.
//! * Rows whose gradient is exactly zero, which hinge losses make common, cost nothing in the backward pass.
//! * After the first steps a training step allocates no memory.

#![deny(unsafe_op_in_unsafe_fn)]

mod activation;
mod adam;
mod application;
mod bench;
mod buffer;
mod error;
mod gemm;
mod init;
mod layout;
mod math;
mod matrix;
mod mlp;
mod ops;
mod pool;
mod recording;
mod rowwise;
mod simd;
mod sync;
mod tape;
mod transpose;
mod var;

pub use activation::Activation;
pub use adam::{Adam, StepRates};
pub use bench::product_rate;
pub use error::TensorError;
pub use init::glorot_limit;
pub use matrix::Matrix;
pub use mlp::{Mlp, MlpSpec, Tensor};
pub use ops::{Binary, NormalBins, Reduce, Unary};
pub use pool::Pool;
pub use recording::{Origin, Recorded, Recording};
pub use rowwise::NORM_EPSILON;
pub use simd::{Isa, Precision};
pub use tape::{Gradients, Tape, Timings};
pub use var::Var;
