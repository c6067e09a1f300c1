//! The engine's guarantees on threads, rows, detached and frozen parts, ensembles and weights.

use crate::support;

use album_nn::{
    Activation, Adam, Isa, Matrix, Mlp, MlpSpec, Pool, Precision, Tape, Tensor, TensorError, glorot_limit,
};
use support::*;

/// The results of a few steps of a small ALBUM-like problem: outputs, gradients, weights.
fn train(pool: &Pool, compaction: bool, rows: usize) -> Vec<Vec<f32>> {
    train_with(Activation::Gelu, pool, compaction, rows)
}

fn train_with(activation: Activation, pool: &Pool, compaction: bool, rows: usize) -> Vec<Vec<f32>> {
    let mut rng = rng(3);
    let q = MlpSpec::new(5, &[70, 33], 1).layer_norm(true).members(2).activation(activation);
    let mut q = Mlp::new(q, &mut rng);
    let pi = MlpSpec::new(3, &[40], 2).output_scale(0.01).activation(activation);
    let mut pi = Mlp::new(pi, &mut rng);
    let (mut adam_q, mut adam_pi) = (Adam::new(&q, 1e-2), Adam::new(&pi, 1e-2));
    let mut tape = Tape::new(pool);
    tape.set_row_compaction(compaction);
    let mut record = Vec::new();
    for _ in 0..3 {
        let (s, a) = (random(&mut rng, rows, 3, 1.0), random(&mut rng, rows, 2, 1.0));
        let y = random(&mut rng, rows, 1, 2.0);
        let tape = tape.begin();
        let (s, a, y) = (tape.constant(&s), tape.constant(&a), tape.constant(&y));
        let values = tape.apply(&q, tape.concat_cols(&[s, a]));
        let hinge = (y - values).relu().mean() + 0.1 * values.mean_cols().mean() - 0.1 * values.mean();
        let action = tape.apply(&pi, s);
        let value = tape.apply_frozen(&q, tape.concat_cols(&[s, action.tanh()])).min_cols();
        let loss = hinge - value.mean() + 0.5 * (action - a).square().sum_cols().mean();
        let gradients = loss.backward();
        record.push(values.to_matrix().data().to_vec());
        record.push(gradients.wrt(action).data().to_vec());
        for net in [&q, &pi] {
            record.extend(gradients.of(net).into_iter().map(|t| t.data));
        }
        adam_q.step(&mut q, &gradients);
        adam_pi.step(&mut pi, &gradients);
        record.extend(q.tensors().into_iter().chain(pi.tensors()).map(|t| t.data));
    }
    record
}

fn bits(record: &[Vec<f32>]) -> Vec<Vec<u32>> {
    record.iter().map(|x| x.iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn networks_and_tapes_move_between_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Tape>();
    send::<Adam>();
    send::<Mlp>();
    sync::<Mlp>();
    send::<Pool>();
    sync::<Pool>();
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for rows in [1, 31, 160, 300] {
        let one = bits(&train(&Pool::new(1), true, rows));
        for threads in [2, 3, 4, 7] {
            assert!(one == bits(&train(&Pool::new(threads), true, rows)), "{threads} threads, {rows} rows");
        }
    }
}

#[test]
fn fused_instruction_sets_give_the_same_bits_and_plain_code_agrees() {
    let record = |isa| train(&Pool::with_isa(2, isa), true, 90);
    let best = record(Isa::detect());
    for isa in [Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter(|isa| isa.is_supported()) {
        assert!(bits(&best) == bits(&record(isa)), "{isa:?}");
    }
    let scalar = record(Isa::Scalar);
    let first_step = 2 + 2 * (q_tensors() + 4);
    for (i, (x, y)) in best.iter().zip(&scalar).take(first_step / 2).enumerate() {
        let exact: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        assert_close(&format!("record {i}"), y, &exact, 1e-5);
    }
}

#[test]
fn every_activation_gives_the_same_bits_on_any_threads_and_fused_set() {
    for activation in [Activation::Relu, Activation::Mish] {
        let best = bits(&train_with(activation, &Pool::new(1), true, 160));
        for threads in [2, 3] {
            let found = train_with(activation, &Pool::new(threads), true, 160);
            assert!(best == bits(&found), "{activation:?}, {threads} threads");
        }
        for isa in [Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter(|isa| isa.is_supported()) {
            let found = train_with(activation, &Pool::with_isa(2, isa), true, 160);
            assert!(best == bits(&found), "{activation:?}, {isa:?}");
        }
    }
}

#[test]
fn networks_without_biases_have_and_train_only_kernels() {
    let spec = MlpSpec::new(5, &[40, 33], 3).bias(false);
    let mut net = Mlp::new(spec.clone(), &mut rng(1));
    let names: Vec<String> = net.tensors().into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["layer0/kernel", "layer1/kernel", "layer2/kernel"]);
    assert_eq!(net.parameter_count(), 5 * 40 + 40 * 33 + 33 * 3);
    let norm = Mlp::new(spec.layer_norm(true), &mut rng(1));
    assert_eq!(norm.parameter_count(), net.parameter_count() + 2 * (40 + 33));
    // Kernels are initialised as in a network with biases.
    assert_eq!(net.tensors()[1].data, Mlp::new(MlpSpec::new(5, &[40, 33], 3), &mut rng(1)).tensors()[2].data);

    let mut adam = Adam::new(&net, 1e-2);
    let mut tape = Tape::new(&Pool::new(2));
    let mut target = net.clone();
    for _ in 0..3 {
        let tape = tape.begin();
        let loss = (tape.apply(&net, tape.constant(&random(&mut rng(2), 40, 5, 1.0))) - 1.0).square().mean();
        adam.step(&mut net, &loss.backward());
        target.track(&net, 0.5, &Pool::new(2));
    }
    // Zero in, zero out, whatever was learned.
    let tape = tape.begin();
    assert_eq!(tape.apply(&net, tape.zeros(2, 5)).to_matrix(), Matrix::zeros(2, 3));
    assert_eq!(tape.apply(&target, tape.zeros(2, 5)).to_matrix(), Matrix::zeros(2, 3));
    let mut restored = Mlp::new(net.spec().clone(), &mut rng(9));
    restored.load(&net.tensors()).unwrap();
    assert_eq!(restored.tensors(), net.tensors());
}

/// Number of tensors of the ensemble in `train`: two members of three layers, two of them with LayerNorm.
fn q_tensors() -> usize {
    2 * (2 * 4 + 2)
}

#[test]
fn leaving_out_zero_rows_changes_nothing_but_rounding() {
    let (with, without) = (train(&Pool::new(2), true, 200), train(&Pool::new(2), false, 200));
    for (i, (x, y)) in with.iter().zip(&without).take(2 + q_tensors() + 4).enumerate() {
        let exact: Vec<f64> = y.iter().map(|&x| f64::from(x)).collect();
        assert_close(&format!("record {i}"), x, &exact, 1e-6);
    }
}

#[test]
fn kernel_gradients_are_exact_under_compaction() {
    // Without LayerNorm every gradient is a sum over rows in order, to which zero rows add nothing.
    let net = Mlp::new(MlpSpec::new(4, &[20, 20], 1), &mut rng(1));
    let x = random(&mut rng(2), 150, 4, 1.0);
    let y = random(&mut rng(3), 150, 1, 1.0);
    let gradients = |compaction| {
        let mut tape = Tape::new(&Pool::new(2));
        tape.set_row_compaction(compaction);
        let tape = tape.begin();
        let x = tape.variable(&x);
        let gradients = (tape.constant(&y) - tape.apply(&net, x)).relu().mean().backward();
        (gradients.of(&net), gradients.wrt(x))
    };
    assert_eq!(gradients(true), gradients(false));
}

#[test]
fn kernels_larger_than_the_cache_give_the_same_rows() {
    // Large enough that rows are processed in groups.
    let net = Mlp::new(MlpSpec::new(600, &[640], 600).layer_norm(true), &mut rng(1));
    let all = random(&mut rng(2), 150, 600, 1.0);
    let mut tape = Tape::new(&Pool::new(2));
    let batch = {
        let tape = tape.begin();
        tape.apply(&net, tape.constant(&all)).to_matrix()
    };
    let exact = forward(&net, &as_f64(&net.tensors()), &matrix_f64(&all)[..600 * 3], 3);
    assert_close("first rows", &batch.data()[..600 * 3], &exact, 1e-5);
    for row in [0, 74, 149] {
        let tape = tape.begin();
        let y = tape.apply(&net, tape.constant_slice(1, 600, all.row(row)));
        assert_eq!(y.to_matrix().data(), batch.row(row));
    }
}

#[test]
fn a_row_does_not_depend_on_its_batch() {
    let net = Mlp::new(MlpSpec::new(6, &[50, 50], 2).layer_norm(true), &mut rng(1));
    let all = random(&mut rng(2), 77, 6, 1.0);
    let mut tape = Tape::new(&Pool::new(2));
    let batch = {
        let tape = tape.begin();
        tape.apply(&net, tape.constant(&all)).to_matrix()
    };
    for row in [0, 5, 40, 76] {
        let tape = tape.begin();
        // With and without keeping what a backward pass needs.
        let x = tape.constant_slice(1, 6, all.row(row));
        for y in [tape.apply(&net, x), tape.apply_frozen(&net, x)] {
            assert_eq!(y.to_matrix().data(), batch.row(row));
        }
    }
}

#[test]
fn applications_without_gradient_leave_nothing_to_each_other() {
    // Networks of different shapes, one after the other, one of them on NaN.
    let nets = [
        Mlp::new(MlpSpec::new(6, &[50, 70, 9], 2).layer_norm(true).members(2), &mut rng(1)),
        Mlp::new(MlpSpec::new(40, &[33], 5), &mut rng(2)),
        Mlp::new(MlpSpec::new(6, &[], 1), &mut rng(3)),
    ];
    let inputs = [(77, 6), (20, 40), (130, 6)].map(|(rows, cols)| random(&mut rng(4), rows, cols, 1.0));
    let alone: Vec<Matrix> = (nets.iter().zip(&inputs))
        .map(|(net, x)| {
            let mut tape = Tape::new(&Pool::new(1));
            let tape = tape.begin();
            tape.apply(net, tape.constant(x)).to_matrix()
        })
        .collect();
    let mut tape = Tape::new(&Pool::new(2));
    let tape = tape.begin();
    let mut found = Vec::new();
    for _ in 0..2 {
        for ((net, x), alone) in nets.iter().zip(&inputs).zip(&alone) {
            let _ = tape.apply_frozen(net, tape.filled(200, net.spec().inputs, f32::NAN));
            found.push((tape.apply_frozen(net, tape.constant(x)), alone));
        }
    }
    // Read after all are done: results are kept apart, only intermediate buffers are shared.
    for (y, alone) in found {
        assert_eq!(y.to_matrix(), *alone);
    }
}

#[test]
fn frozen_networks_collect_nothing_and_pass_gradients_on() {
    let net = Mlp::new(MlpSpec::new(3, &[16], 1).layer_norm(true), &mut rng(1));
    let x = random(&mut rng(2), 9, 3, 1.0);
    let run = |frozen: bool| {
        let mut tape = Tape::new(&Pool::new(1));
        let tape = tape.begin();
        let x = tape.variable(&x);
        let y = if frozen { tape.apply_frozen(&net, x) } else { tape.apply(&net, x) };
        let gradients = y.square().mean().backward();
        (gradients.wrt(x), gradients.of(&net), gradients.norm(&net))
    };
    let (frozen, thawed) = (run(true), run(false));
    assert_eq!(frozen.0, thawed.0);
    assert!(frozen.1.iter().all(|t| t.data.iter().all(|&g| g == 0.0)));
    assert_eq!(frozen.2, 0.0);
    assert!(thawed.2 > 0.0);
}

#[test]
fn gradients_stop_at_detach() {
    let net = Mlp::new(MlpSpec::new(3, &[16], 1), &mut rng(1));
    let x = random(&mut rng(2), 9, 3, 1.0);
    let mut tape = Tape::new(&Pool::new(1));
    {
        let tape = tape.begin();
        let y = tape.apply(&net, tape.constant(&x));
        let gradients = (y.detach() * 2.0).mean().backward();
        assert_eq!(gradients.norm(&net), 0.0);
    }
    let tape = tape.begin();
    let y = tape.apply(&net, tape.constant(&x));
    // y * sg(y) has the gradient of y weighted by y: half that of y^2.
    let gradients = (y * y.detach()).mean().backward();
    let half = gradients.of(&net);
    let mut other = Tape::new(&Pool::new(1));
    let other = other.begin();
    let y = other.apply(&net, other.constant(&x));
    let whole = y.square().mean().backward().of(&net);
    for (h, w) in half.iter().zip(&whole) {
        let exact: Vec<f64> = w.data.iter().map(|&w| f64::from(w) / 2.0).collect();
        assert_close(&h.name, &h.data, &exact, 1e-6);
    }
}

#[test]
fn two_applications_add_their_gradients() {
    let net = Mlp::new(MlpSpec::new(3, &[16], 1).layer_norm(true), &mut rng(1));
    let (a, b) = (random(&mut rng(2), 40, 3, 1.0), random(&mut rng(3), 25, 3, 1.0));
    let mut tape = Tape::new(&Pool::new(2));
    let together = {
        let tape = tape.begin();
        let stacked = tape.concat_rows(&[tape.constant(&a), tape.constant(&b)]);
        tape.apply(&net, stacked).square().sum().backward().of(&net)
    };
    let tape = tape.begin();
    let (y, z) = (tape.apply(&net, tape.constant(&a)), tape.apply(&net, tape.constant(&b)));
    let apart = (y.square().sum() + z.square().sum()).backward().of(&net);
    for (x, y) in apart.iter().zip(&together) {
        let exact: Vec<f64> = y.data.iter().map(|&y| f64::from(y)).collect();
        assert_close(&x.name, &x.data, &exact, 1e-6);
    }
}

#[test]
fn an_ensemble_equals_its_members() {
    let spec = MlpSpec::new(4, &[24, 18], 2).layer_norm(true);
    let ensemble = Mlp::new(spec.clone().members(3), &mut rng(1));
    let x = random(&mut rng(2), 21, 4, 1.0);
    let weights = random(&mut rng(3), 21, 6, 1.0);
    let mut tape = Tape::new(&Pool::new(2));
    let tape = tape.begin();
    let input = tape.variable(&x);
    let all = tape.apply(&ensemble, input);
    let gradients = (all * tape.constant(&weights)).sum().backward();
    let whole = gradients.of(&ensemble);
    let per_member = whole.len() / 3;
    let mut input_gradient = vec![0.0; x.data().len()];
    for member in 0..3 {
        let rename =
            |t: &Tensor| Tensor { name: t.name.replace(&format!("member{member}/"), ""), ..t.clone() };
        let part = |tensors: &[Tensor]| -> Vec<Tensor> {
            tensors[member * per_member..(member + 1) * per_member].iter().map(rename).collect()
        };
        let mut net = Mlp::new(spec.clone(), &mut rng(9));
        net.load(&part(&ensemble.tensors())).unwrap();
        let mut tape = Tape::new(&Pool::new(1));
        let tape = tape.begin();
        let input = tape.variable(&x);
        let y = tape.apply(&net, input);
        assert_eq!(y.to_matrix(), all.slice_cols(2 * member, 2 * member + 2).to_matrix());
        let w = tape.constant(&weights).slice_cols(2 * member, 2 * member + 2);
        let gradients = (y * w).sum().backward();
        assert_eq!(gradients.of(&net), part(&whole));
        gradients.wrt(input).data().iter().zip(&mut input_gradient).for_each(|(g, sum)| *sum += g);
    }
    assert_eq!(gradients.wrt(input).data(), input_gradient);
    // Members have different initial weights.
    assert_ne!(ensemble.tensors()[0].data, ensemble.tensors()[per_member].data);
}

#[test]
fn initial_weights_fill_the_glorot_range() {
    let net = Mlp::new(MlpSpec::new(100, &[200], 50).layer_norm(true).output_scale(0.01), &mut rng(1));
    let limits = [glorot_limit(100, 200, 1.0), glorot_limit(200, 50, 0.01)];
    assert!((limits[0] - (3.0f32 / 150.0).sqrt()).abs() < 1e-7);
    for (layer, limit) in limits.into_iter().enumerate() {
        let name = |what: &str| format!("layer{layer}/{what}");
        for tensor in net.tensors() {
            let (low, high) =
                tensor.data.iter().fold((f32::MAX, f32::MIN), |(l, h), &x| (l.min(x), h.max(x)));
            if tensor.name == name("kernel") {
                assert!(-limit <= low && low < -0.99 * limit && 0.99 * limit < high && high <= limit);
                let mean = tensor.data.iter().sum::<f32>() / tensor.data.len() as f32;
                assert!(mean.abs() < 0.03 * limit);
            } else if tensor.name == name("norm_scale") {
                assert_eq!((low, high), (1.0, 1.0));
            } else if tensor.name.starts_with(&name("")) {
                assert_eq!((low, high), (0.0, 0.0), "{}", tensor.name);
            }
        }
    }
}

#[test]
fn tracking_mixes_weights() {
    let online = Mlp::new(MlpSpec::new(5, &[40], 3).layer_norm(true), &mut rng(1));
    let mut target = Mlp::new(MlpSpec::new(5, &[40], 3).layer_norm(true), &mut rng(2));
    let before = target.tensors();
    let pool = Pool::new(2);
    target.track(&online, 0.25, &pool);
    for ((new, old), online) in target.tensors().iter().zip(&before).zip(online.tensors()) {
        for i in 0..new.data.len() {
            assert_eq!(new.data[i], 0.25 * online.data[i] + 0.75 * old.data[i]);
        }
    }
    // The target's forward and backward passes use its new weights.
    let mut reloaded = Mlp::new(MlpSpec::new(5, &[40], 3).layer_norm(true), &mut rng(3));
    reloaded.load(&target.tensors()).unwrap();
    let x = random(&mut rng(4), 6, 5, 1.0);
    let results = [&target, &reloaded].map(|net| {
        let mut tape = Tape::new(&pool);
        let tape = tape.begin();
        let x = tape.variable(&x);
        let y = tape.apply(net, x);
        (y.to_matrix(), y.square().sum().backward().wrt(x))
    });
    assert_eq!(results[0], results[1]);
    target.track(&online, 1.0, &pool);
    assert_eq!(target.tensors(), online.tensors());
}

#[test]
fn a_target_does_not_disturb_the_gradients_of_its_online_network() {
    let spec = MlpSpec::new(5, &[40], 1).layer_norm(true).members(2);
    let x = random(&mut rng(2), 30, 5, 1.0);
    let run = |with_target: bool| {
        let mut net = Mlp::new(spec.clone(), &mut rng(1));
        let mut target = net.clone();
        let mut adam = Adam::new(&net, 1e-2);
        let pool = Pool::new(2);
        let mut tape = Tape::new(&pool);
        let mut record = Vec::new();
        for step in 0..3 {
            let tape = tape.begin();
            let x = tape.constant(&x);
            if with_target {
                // The target's outputs and weights before, between and after updates.
                let _ = tape.apply_frozen(&target, x);
                target.track(&net, 0.1, &pool);
            }
            let q = tape.apply(&net, x);
            if with_target {
                let _ = tape.apply(&target, x);
                target.track(&net, 0.1, &pool);
            }
            let gradients = (q - step as f32).square().mean().backward();
            if with_target {
                target.track(&net, 0.1, &pool);
                assert_eq!(gradients.norm(&target), 0.0);
            }
            record.extend(gradients.of(&net));
            adam.step(&mut net, &gradients);
            record.extend(net.tensors());
        }
        // It lags behind.
        assert_ne!(target.tensors(), net.tensors());
        record
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn multiply_adds_are_the_entries_of_kernels() {
    let net = Mlp::new(MlpSpec::new(37, &[512, 40], 3).layer_norm(true).members(2), &mut rng(1));
    assert_eq!(net.macs(), 2 * (37 * 512 + 512 * 40 + 40 * 3));
    let kernels = net.tensors().iter().filter(|t| t.shape.len() == 2).map(|t| t.data.len()).sum::<usize>();
    assert_eq!(net.macs(), kernels);
}

#[test]
fn a_clone_is_a_network_of_its_own() {
    let mut net = Mlp::new(MlpSpec::new(2, &[8], 1), &mut rng(1));
    let copy = net.clone();
    let before = copy.tensors();
    let mut adam = Adam::new(&net, 0.1);
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.constant(&random(&mut rng(2), 4, 2, 1.0));
    let loss = tape.apply(&net, x).sum() + tape.apply_frozen(&copy, x).sum();
    let gradients = loss.backward();
    assert_eq!(gradients.norm(&copy), 0.0);
    adam.step(&mut net, &gradients);
    assert_eq!(copy.tensors(), before);
    assert_ne!(net.tensors(), before);
}

#[test]
fn weights_changed_before_the_backward_pass_do_not_reach_it() {
    let mut net = Mlp::new(MlpSpec::new(2, &[8], 1), &mut rng(1));
    let x = random(&mut rng(2), 4, 2, 1.0);
    let mut tape = Tape::new(&Pool::new(1));
    let expected = {
        let tape = tape.begin();
        let x = tape.variable(&x);
        tape.apply(&net, x).square().sum().backward().wrt(x)
    };
    let tape = tape.begin();
    let x = tape.variable(&x);
    let y = tape.apply(&net, x);
    perturb(&mut net, &mut rng(3), 1.0);
    assert_eq!(y.square().sum().backward().wrt(x), expected);
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let mut net = Mlp::new(MlpSpec::new(2, &[8], 1), &mut rng(1));
    let tensors = net.tensors();
    let names: Vec<&str> = tensors.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["layer0/kernel", "layer0/bias", "layer1/kernel", "layer1/bias"]);
    assert_eq!(net.load(&tensors[1..]), Err(TensorError::Count { found: 3, expected: 4 }));
    let mut swapped = tensors.clone();
    swapped.swap(1, 3);
    assert!(matches!(net.load(&swapped), Err(TensorError::Name { .. })));
    let mut short = tensors.clone();
    short[3] = Tensor { shape: vec![2], data: vec![0.0; 2], ..short[3].clone() };
    let error = net.load(&short).unwrap_err();
    let message = "tensor `layer1/bias` has shape [2] and 2 values, expected shape [1]";
    assert_eq!(error.to_string(), message);
    assert_eq!(net.tensors(), tensors, "nothing was changed");
    assert!(Adam::new(&net, 0.1).load(3, &tensors, &short).is_err());
}

#[test]
fn a_linear_network_on_zeros_is_a_learned_vector() {
    let mut vector = Mlp::new(MlpSpec::new(1, &[], 3), &mut rng(1));
    let mut adam = Adam::new(&vector, 0.05);
    let mut tape = Tape::new(&Pool::new(1));
    for _ in 0..400 {
        let tape = tape.begin();
        let v = tape.apply(&vector, tape.constant(&Matrix::zeros(1, 1)));
        let loss = (v - tape.constant_slice(1, 3, &[1.0, -2.0, 0.5])).square().sum();
        let gradients = loss.backward();
        adam.step(&mut vector, &gradients);
    }
    let learned = &vector.tensors()[1];
    assert_close("vector", &learned.data, &[1.0, -2.0, 0.5], 1e-2);
}

#[test]
#[should_panic(expected = "one loss per step")]
fn a_second_backward_pass_is_refused() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let x = tape.variable(&Matrix::zeros(1, 1));
    let _ = x.backward();
    let _ = x.backward();
}

#[test]
#[should_panic(expected = "a network with 3 inputs cannot take 2 columns")]
fn a_wrong_width_is_refused() {
    let net = Mlp::new(MlpSpec::new(3, &[4], 1), &mut rng(1));
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let _ = tape.apply(&net, tape.constant(&Matrix::zeros(5, 2)));
}

#[test]
#[should_panic(expected = "cannot combine 2 x 3 with 2 x 2")]
fn shapes_that_do_not_fit_are_refused() {
    let mut tape = Tape::new(&Pool::new(1));
    let tape = tape.begin();
    let _ = tape.constant(&Matrix::zeros(2, 3)) + tape.constant(&Matrix::zeros(2, 2));
}

#[test]
fn not_a_number_reaches_loss_and_gradients() {
    for activation in [Activation::Gelu, Activation::Relu, Activation::Mish] {
        for layer_norm in [false, true] {
            check_not_a_number(MlpSpec::new(3, &[40, 40], 1).layer_norm(layer_norm).activation(activation));
        }
    }
}

fn check_not_a_number(spec: MlpSpec) {
    let net = Mlp::new(spec, &mut rng(1));
    let mut x = random(&mut rng(2), 50, 3, 1.0);
    x.data_mut()[70] = f32::NAN;
    let mut tape = Tape::new(&Pool::new(2));
    let tape = tape.begin();
    let y = tape.apply(&net, tape.constant(&x));
    let loss = (1.0 - y).relu().mean();
    assert!(loss.item().is_nan());
    assert!(loss.backward().norm(&net).is_nan());
    // Other rows are unaffected.
    y.with_value(|y| assert!(y.iter().enumerate().all(|(row, y)| y.is_nan() == (row == 70 / 3))));
}

/// Such numbers would send every product of the backward pass through the kernels that check each sum.
#[test]
fn bfloat16_drops_gradients_that_adam_cannot_see() {
    let mut net = Mlp::new(MlpSpec::new(3, &[40], 1), &mut rng(1));
    let mut tensors = net.tensors();
    let bias = tensors.iter_mut().find(|tensor| tensor.name == "layer0/bias").unwrap();
    bias.data[7] = -9.0; // the slope of GELU is near 2^-90 there
    net.load(&tensors).unwrap();
    let x = random(&mut rng(2), 50, 3, 0.1);
    for (precision, is_zero) in [(Precision::F32, false), (Precision::Bf16, true)] {
        let mut tape = Tape::new(&Pool::new(1).with_precision(precision));
        let tape = tape.begin();
        let gradients = tape.apply(&net, tape.constant(&x)).sum().backward().of(&net);
        let bias = &gradients.iter().find(|tensor| tensor.name == "layer0/bias").unwrap().data;
        assert_eq!(bias[7] == 0.0, is_zero, "{precision:?}: {}", bias[7]);
        assert!(bias[7].abs() < 1e-20 && (bias[6].abs() > 1e-3), "{precision:?}: {} {}", bias[6], bias[7]);
    }
}

#[test]
fn bfloat16_gives_the_same_bits_on_any_threads_and_fused_set() {
    let bits_of =
        |isa, threads| bits(&train(&Pool::with_isa(threads, isa).with_precision(Precision::Bf16), true, 70));
    let sets = [Isa::Avx2, Isa::Avx512, Isa::Neon].into_iter().filter(|isa| isa.is_supported());
    let mut found = sets.flat_map(|isa| [1, 2, 3].map(|threads| bits_of(isa, threads)));
    let Some(first) = found.next() else { return };
    assert!(found.all(|other| other == first));
    assert_ne!(first, bits(&train(&Pool::new(1), true, 70)), "products are rounded");
}

#[test]
fn an_empty_batch_is_no_trouble() {
    let net = Mlp::new(MlpSpec::new(3, &[4], 1).layer_norm(true), &mut rng(1));
    let mut tape = Tape::new(&Pool::new(2));
    let tape = tape.begin();
    let y = tape.apply(&net, tape.constant(&Matrix::zeros(0, 3)));
    assert_eq!((y.rows(), y.cols()), (0, 1));
    let gradients = y.sum().backward();
    assert_eq!(gradients.norm(&net), 0.0);
}
