//! Finite MDPs and the Lifted Bellman Linear Program (LBLP): the exact best values that a fixed dataset
//! supports.
//!
//! A dataset induces an [`EmpiricalMdp`]; its [`Lblp`] has `(Q*_D, V*_D)` as unique minimiser; [`solve`]
//! finds it with all dual variables and a certificate that shares no code with the solver. For recorded
//! transitions with continuous states, [`in_sample_values`] gives V*_D of every transition; with discrete
//! actions and repeating states, [`Truth`](truth::Truth) gives Q*_D and V*_D as a reference for learned
//! values and policies.
//!
//! ```
//! use album_tabular::{EmpiricalMdp, Lblp, Solver, TabularDataset, solve};
//!
//! // Two trajectories. From state 0 the data knows a poor way (1) and a good one (2) to the end, state 9.
//! let mut data = TabularDataset::default();
//! data.push(0, 0, 0.0, 1, false);
//! data.push(1, 0, 1.0, 9, true);
//! data.push(0, 1, 0.0, 2, false);
//! data.push(2, 0, 5.0, 9, true);
//!
//! let empirical = EmpiricalMdp::new(&data, 0.9)?;
//! let lblp = Lblp::of_data(&empirical, 0.1, 0.05, 2)?;
//! let solution = solve(&lblp, Solver::Bellman)?;
//! assert_eq!(solution.v, vec![4.5, 1.0, 5.0]);
//! assert!(solution.certificate.gap < 1e-12);
//! # Ok::<(), album_tabular::TabularError>(())
//! ```
//!
//! Around it: the four constraint families ([`Family`]), the hinge [`Relaxation`] that ALBUM's critic is trained on, the
//! K-step [`Repair`] iteration, the [`boundedness`] condition, [`Stationarity`], and [`theory`], which checks every
//! statement with numbers on [`random`] MDPs and on [`MudWorld`].

mod coefficients;
mod dataset;
mod empirical;
mod error;
mod family;
mod in_sample;
mod lblp;
mod linear;
pub mod log;
pub mod lp;
mod mdp;
mod mudworld;
mod mudworld_data;
mod mutation;
mod policy;
pub mod random;
mod relaxation;
mod repair;
mod returns;
mod rollout;
mod solve;
mod sparse;
mod stationarity;
pub mod theory;
pub mod truth;
mod value_iteration;

pub use coefficients::{Boundedness, Coefficients, boundedness};
pub use dataset::{KEYS, TabularDataset};
pub use empirical::EmpiricalMdp;
pub use error::TabularError;
pub use family::{Family, PerFamily, Terms};
pub use in_sample::{InSampleValues, JoinedStates, ValueSummary, in_sample_values};
pub use lblp::{Lblp, Weights};
pub use linear::DiscountedSystem;
pub use mdp::{Action, Mdp, check_gamma, max_difference};
pub use mudworld::{ACTIONS, Behaviour, MUD_PROBABILITY, MudWorld};
pub use mudworld_data::Encoding;
pub use policy::policy_value;
pub use relaxation::{Gradient, Relaxation, hinge, residuals};
pub use repair::Repair;
pub use returns::best_dataset_return;
pub use rollout::{Rollout, RolloutMatrix};
pub use solve::{Certificate, Solution, Solver, certify, solve};
pub use sparse::Csr;
pub use stationarity::{Regime, Selections, Stationarity};
pub use value_iteration::{value_iteration, value_iteration_from};
