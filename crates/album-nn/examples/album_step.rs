//! Times one ALBUM update: critic and actor losses, their gradients, and Adam on all three networks.
//!
//! ```text
//! cargo run --release -p album-nn --example album_step -- --threads 2 --batch 256 --width 512
//! ```
//! `--rounds N` sets the number of timed steps, `--json` prints one JSON object instead of a table, and
//! `--isa scalar|avx2|avx512|neon` forces the kernels. `--bf16` rounds the factors of products to bfloat16.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use album_nn::{Adam, Isa, Matrix, Mlp, MlpSpec, Pool, Precision, Tape, Timings, product_rate};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const OBSERVATION: usize = 29;
const ACTION: usize = 8;
const LAYERS: usize = 4;
const GAMMA: f32 = 0.995;
const K: i32 = 25;
const OMEGA_Q: f32 = 0.05;
const OMEGA_V: f32 = 0.1;
const LAMBDA_B: f32 = 2.5;
const LAMBDA_E: f32 = 2.5;
const LAMBDA_K: f32 = 1.0;
const ALPHA_BC: f32 = 0.01;

struct Batch {
    s: Matrix,
    a: Matrix,
    /// s and s' stacked, so that V processes them in one product.
    states: Matrix,
    s_k: Matrix,
    /// Discounted rewards of one step and of K steps.
    r_1: Matrix,
    r_k: Matrix,
}

struct Album {
    q: Mlp,
    v: Mlp,
    actor: Mlp,
    optimisers: [Adam; 3],
}

impl Album {
    fn new(width: usize, rng: &mut ChaCha8Rng) -> Self {
        let hidden = [width; LAYERS];
        let q = Mlp::new(MlpSpec::new(OBSERVATION + ACTION, &hidden, 1).layer_norm(true), rng);
        let v = Mlp::new(MlpSpec::new(OBSERVATION, &hidden, 1).layer_norm(true), rng);
        let actor = Mlp::new(MlpSpec::new(OBSERVATION, &hidden, ACTION).output_scale(0.01), rng);
        let optimisers = [Adam::new(&q, 1e-4), Adam::new(&v, 1e-4), Adam::new(&actor, 3e-4)];
        Self { q, v, actor, optimisers }
    }

    /// One update; returns the critic loss, the time breakdown of the tape, and the time of Adam.
    fn step(&mut self, tape: &mut Tape, batch: &Batch) -> (f32, Timings, Duration) {
        let tape = tape.begin();
        let (s, a) = (tape.constant(&batch.s), tape.constant(&batch.a));
        let rows = s.rows();

        let q = tape.apply(&self.q, tape.concat_cols(&[s, a]));
        let values = tape.apply(&self.v, tape.constant(&batch.states));
        let v = values.slice_rows(0, rows);
        let y_1 = tape.constant(&batch.r_1) + GAMMA * values.slice_rows(rows, 2 * rows);
        // Without gradients, so nothing is kept for the backward pass.
        let y_k =
            tape.constant(&batch.r_k) + GAMMA.powi(K) * tape.apply_frozen(&self.v, tape.constant(&batch.s_k));
        let critic_loss = OMEGA_Q * q.mean()
            + OMEGA_V * v.mean()
            + LAMBDA_B * (y_1 - q).relu().mean()
            + LAMBDA_E * (q - v).relu().mean()
            + LAMBDA_K * ((y_k - q).relu().mean() + (y_k - v).relu().mean());

        let pi = tape.apply(&self.actor, s);
        let q_pi = tape.apply_frozen(&self.q, tape.concat_cols(&[s, pi.clip(-1.0, 1.0)]));
        let normaliser = q_pi.abs().mean().detach() + 1e-6;
        let actor_loss = -(q_pi.mean() / normaliser) + ALPHA_BC * (pi - a).square().sum_cols().mean();

        let gradients = (critic_loss + actor_loss).backward();
        let started = Instant::now();
        let networks = [&mut self.q, &mut self.v, &mut self.actor];
        for (optimiser, network) in self.optimisers.iter_mut().zip(networks) {
            optimiser.step(network, &gradients);
        }
        (critic_loss.item(), tape.timings(), started.elapsed())
    }

    /// Floating-point operations of the matrix products of one step, counting all rows.
    fn operations(&self, batch: usize) -> f64 {
        let (mut forward, mut first) = ([0.0; 3], [0.0; 3]);
        for (i, net) in [&self.q, &self.v, &self.actor].into_iter().enumerate() {
            let kernels: Vec<f64> = (net.tensors().iter())
                .filter(|t| t.shape.len() == 2)
                .map(|t| 2.0 * (t.data.len() * batch) as f64)
                .collect();
            (forward[i], first[i]) = (kernels.iter().sum(), kernels[0]);
        }
        let [q, v, pi] = forward;
        let (critic, value, actor) =
            (3.0 * q - first[0], 3.0 * v + 2.0 * (2.0 * v - first[1]), 3.0 * pi - first[2]);
        critic + value + actor + 2.0 * q
    }
}

/// Approximately standard normal numbers, as sums of twelve uniform ones.
fn noise(rng: &mut ChaCha8Rng, rows: usize, cols: usize) -> Matrix {
    let mut one = || (0..12).map(|_| rng.next_u32() as f32 / u32::MAX as f32).sum::<f32>() - 6.0;
    Matrix::from_vec(rows, cols, (0..rows * cols).map(|_| one()).collect())
}

fn batch(rng: &mut ChaCha8Rng, rows: usize) -> Batch {
    let states = noise(rng, 2 * rows, OBSERVATION);
    let s_k = noise(rng, rows, OBSERVATION);
    let s = Matrix::from_vec(rows, OBSERVATION, states.data()[..rows * OBSERVATION].to_vec());
    let mut a = noise(rng, rows, ACTION);
    a.data_mut().iter_mut().for_each(|a| *a = a.clamp(-1.0, 1.0));
    let r_k = -(1.0 - GAMMA.powi(K)) / (1.0 - GAMMA);
    let filled = |value: f32| Matrix::from_vec(rows, 1, vec![value; rows]);
    Batch { s, a, states, s_k, r_1: filled(-1.0), r_k: filled(r_k) }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let number = |name: &str, default: usize| {
        text(name)
            .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name} {value}: no number")))
    };
    let isa = match text("--isa").map(String::as_str) {
        None => Isa::detect(),
        Some("scalar") => Isa::Scalar,
        Some("avx2") => Isa::Avx2,
        Some("avx512") => Isa::Avx512,
        Some("neon") => Isa::Neon,
        Some(other) => panic!("--isa {other}: not one of scalar, avx2, avx512, neon"),
    };
    let (threads, rows) = (number("--threads", 0), number("--batch", 256));
    let (width, rounds) = (number("--width", 512), number("--rounds", 60));

    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut album = Album::new(width, &mut rng);
    let batches: Vec<Batch> = (0..4).map(|_| batch(&mut rng, rows)).collect();
    let precision = if arguments.iter().any(|a| a == "--bf16") { Precision::Bf16 } else { Precision::F32 };
    let pool = Pool::with_isa(threads, isa).with_precision(precision);
    let mut tape = Tape::new(&pool);
    for i in 0..5 {
        album.step(&mut tape, &batches[i % batches.len()]);
    }
    let mut times: [Vec<f64>; 5] = Default::default();
    let mut loss = 0.0;
    for round in 0..rounds {
        let started = Instant::now();
        let (critic_loss, tape_times, adam) = album.step(&mut tape, &batches[round % batches.len()]);
        let all = started.elapsed();
        loss = critic_loss;
        let parts = [all, tape_times.forward, tape_times.backward_rows, tape_times.backward_weights, adam];
        for (times, part) in times.iter_mut().zip(parts) {
            times.push(1e3 * part.as_secs_f64());
        }
    }
    let best = times[0].iter().copied().fold(f64::INFINITY, f64::min);
    let [all, forward, rows_back, weights_back, adam] = times.map(median);
    let gflop = album.operations(rows) / 1e9;
    let rate = gflop / (all / 1e3);
    let measured = product_rate(&pool) * pool.threads() as f64;
    let parameters: usize = [&album.q, &album.v, &album.actor].iter().map(|net| net.parameter_count()).sum();
    if arguments.iter().any(|a| a == "--json") {
        println!(
            "{{\"engine\":\"album\",\"ms_per_step\":{all:.3},\"ms_best\":{best:.3},\"gflop_per_step\":{gflop:.3},\
             \"gflops\":{rate:.1},\"gemm_gflops\":{measured:.1},\"gemm_share\":{:.3},\"threads\":{},\"batch\":{rows},\
             \"width\":{width},\"loss\":{loss},\"parameters\":{parameters},\"ms\":{{\"forward\":{forward:.3},\
             \"backward_rows\":{rows_back:.3},\"backward_weights\":{weights_back:.3},\"adam\":{adam:.3}}}}}",
            rate / measured,
            pool.threads()
        );
        return;
    }
    println!("{parameters} parameters, batch {rows}, width {width}, {} threads, {isa:?}", pool.threads());
    println!("step               {all:8.3} ms (best {best:.3})");
    println!("  forward          {forward:8.3}");
    println!("  backward rows    {rows_back:8.3}");
    println!("  backward weights {weights_back:8.3}");
    println!("  adam             {adam:8.3}");
    println!("  the rest         {:8.3}", all - forward - rows_back - weights_back - adam);
    println!(
        "{gflop:.2} GFLOP if no row were left out: {rate:.1} GFLOP/s, {:.0} % of the",
        100.0 * rate / measured
    );
    println!("{measured:.1} GFLOP/s that plain products reach here; critic loss {loss}");
}
