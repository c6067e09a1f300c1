//! IQL: implicit Q-learning (Kostrikov et al., 2021), with the policy extraction of FQL's code base.
//!
//! ```text
//! L(V)   = E[ L_tau( min_i Qbar_i(s,a) - V(s) ) ],     L_tau(u) = |tau - 1(u < 0)| u^2
//! L(Q)   = E[ sum_i (Q_i(s,a) - y)^2 ],                y = r + gamma m V(s')
//! L(psi) = - E[ w log N(a; pi(s), I) ],                w = min( exp(alpha (min_i Q_i(s,a) - V(s))), 100 )        (awr)
//! L(psi) = - E[q] / sg(E|q|) - alpha E[ log N(a; pi(s), I) ],   q = min_i Q_i(s, clip(pi(s)))                    (ddpgbc)
//! ```
//!
//! `Qbar` is the target network; all losses are taken at the same parameters. With discrete actions Q has an
//! output for each choice, and the log-probability `log pi(a|s)` of the recorded choice replaces
//! `log N(a; pi(s), I)` (awr only).

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, fail, nonnegative, open_unit};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, maximise, one_step_target, value_spec};
use crate::parts::flow::Through;
use crate::parts::head::Head;
use crate::registry::AgentKind;
use album_data::{ActionSpace, SegmentConfig};
use album_nn::{MlpSpec, Var};
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind =
    AgentKind::new::<Config>("iql", "Gaussian", "arXiv 2110.06169", include_str!("../../presets/iql.toml"))
        .with_discrete();

/// How the policy is extracted from the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extraction {
    /// Advantage-weighted regression.
    #[default]
    Awr,
    /// Gradient ascent on Q with behaviour cloning (DDPG+BC).
    DdpgBc,
}

/// Hyperparameters. Defaults are those of FQL's code base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// The expectile that V estimates.
    pub expectile: f64,
    /// `awr`: inverse temperature of the advantage. `ddpgbc`: weight of behaviour cloning. Chosen per environment.
    pub alpha: f64,
    /// `awr` or `ddpgbc`.
    pub extraction: Extraction,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            expectile: 0.9,
            alpha: 10.0,
            extraction: Extraction::Awr,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        open_unit(&[("expectile", self.expectile)])?;
        nonnegative(&[("alpha", self.alpha)])
    }

    fn settling_steps(&self) -> Option<f64> {
        self.critic.settling_steps(self.common.gamma)
    }

    fn check_actions(&self, actions: &ActionSpace) -> Result<(), AgentError> {
        match (actions, self.extraction) {
            (ActionSpace::Discrete { .. }, Extraction::DdpgBc) => {
                fail("extraction", "ddpgbc".into(), "awr, because the data's actions are discrete")
            }
            _ => Ok(()),
        }
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let values = Values::new(nets, sizes, &self.common.hidden, &self.critic, self.expectile);
        let actor = Actor::new(self, sizes, nets);
        Box::new(Iql { config: self.clone(), values, actor })
    }
}

/// Q and V of IQL, shared by several algorithms.
pub(crate) struct Values {
    pub(crate) v: NetworkId,
    pub(crate) critic: Critic,
    config: CriticConfig,
    expectile: f64,
}

/// IQL's value losses and their terms.
pub(crate) struct ValueLosses<'t> {
    pub(crate) value: Var<'t>,
    pub(crate) critic: Var<'t>,
    /// V(s).
    pub(crate) v: Var<'t>,
    /// Q of every ensemble member.
    pub(crate) q: Var<'t>,
}

impl Values {
    pub(crate) fn new(
        nets: &mut Networks,
        sizes: Sizes,
        hidden: &[usize],
        config: &CriticConfig,
        expectile: f64,
    ) -> Self {
        Values::of(nets, sizes, |inputs| value_spec(inputs, hidden), config, expectile)
    }

    /// The same for arbitrary network shapes, given as functions of the input width.
    pub(crate) fn of(
        nets: &mut Networks,
        sizes: Sizes,
        spec: impl Fn(usize) -> MlpSpec,
        config: &CriticConfig,
        expectile: f64,
    ) -> Self {
        let v = nets.value("v", spec(sizes.s), config.lr);
        let critic = Critic::of(nets, ["q", "q_target"], sizes.q_spec(spec), config);
        Values { v, critic, config: config.clone(), expectile }
    }

    /// The network of Q, for [`Algorithm::q`].
    pub(crate) fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, self.config.q_agg))
    }

    /// L(V) + L(Q), with their metrics.
    pub(crate) fn critic_loss<'t>(
        &self,
        nets: &Networks,
        x: &Inputs<'t, '_>,
        gamma: f64,
        measures: &mut Measures<'t>,
    ) -> Var<'t> {
        let losses = self.losses(nets, x, gamma);
        losses.measure(measures);
        losses.value + losses.critic
    }

    /// L(V) and L(Q).
    pub(crate) fn losses<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, gamma: f64) -> ValueLosses<'t> {
        let v = x.tape.apply(&nets[self.v], x.s());
        let q_bar = self.config.q_agg.of(x.q(&nets[self.critic.target], Through::Frozen)).detach();
        let value = (q_bar - v).expectile_loss(self.expectile as f32).mean();

        let q = x.q(&nets[self.critic.q], Through::Trained);
        let y = one_step_target(x, gamma, x.tape.apply_frozen(&nets[self.v], x.s_next()));
        let critic = (q - y).square().sum_cols().mean();
        ValueLosses { value, critic, v, q }
    }
}

impl<'t> ValueLosses<'t> {
    pub(crate) fn measure(&self, measures: &mut Measures<'t>) {
        measures
            .mean("critic/critic_loss", self.critic)
            .q(self.q)
            .mean("value/value_loss", self.value)
            .v(self.v);
    }
}

struct Iql {
    config: Config,
    values: Values,
    actor: Actor,
}

/// IQL's policy.
#[derive(Clone, Copy)]
pub(crate) struct Actor {
    pub(crate) net: NetworkId,
    pub(crate) head: Head,
}

impl Actor {
    pub(crate) fn new(c: &Config, sizes: Sizes, nets: &mut Networks) -> Self {
        let head = Head::of(sizes);
        Actor { net: nets.policy("actor", head.spec(sizes.s, &c.common.hidden), c.critic.lr), head }
    }
}

impl Algorithm for Iql {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let values = self.values.losses(nets, x, self.config.common.gamma);
        values.measure(&mut measures);
        let actor = actor_loss(&self.config, nets, self.actor, &self.values, &values, x, &mut measures);
        Loss { total: values.value + values.critic + actor, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        self.actor.head.decide(&nets[self.actor.net])
    }

    fn value(&self) -> Option<NetworkId> {
        Some(self.values.v)
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        self.values.q()
    }
}

/// The actor loss, from values at the same parameters.
pub(crate) fn actor_loss<'t>(
    c: &Config,
    nets: &Networks,
    actor: Actor,
    values: &Values,
    losses: &ValueLosses<'t>,
    x: &Inputs<'t, '_>,
    measures: &mut Measures<'t>,
) -> Var<'t> {
    let (s, a) = (x.s(), x.a());
    let alpha = c.alpha as f32;
    let pi = x.tape.apply(&nets[actor.net], s);
    let log_likelihood = actor.head.log_likelihood(pi, a);
    let loss = match c.extraction {
        Extraction::Awr => {
            let advantage = (losses.q.min_cols() - losses.v).detach();
            measures.value("actor/adv", advantage);
            let w = (alpha * advantage).exp().clip(0.0, 100.0);
            -(w * log_likelihood).mean()
        }
        Extraction::DdpgBc => {
            let q = values.critic.frozen(nets, s, pi.clip(-1.0, 1.0)).min_cols();
            maximise(q, Some(0.0)) - alpha * log_likelihood.mean()
        }
    };
    measures.mean("actor/actor_loss", loss).mean("actor/bc_log_prob", log_likelihood);
    actor.head.measure(pi, a, measures);
    loss
}
