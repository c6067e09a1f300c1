//! ReBRAC: behaviour-regularised actor-critic (Tarasov et al., 2023), as in FQL's code base.
//!
//! ```text
//! a'     = clip( pibar(s') + clip(sigma eps, -c, c), -1, 1 ),    eps ~ N(0, I),  pi(s) = tanh(mean(s))
//! y      = r + gamma m ( min_i Qbar_i(s', a') - alpha_2 |a' - a'_data|^2 )
//! L(Q)   = E[ mean_i (Q_i(s,a) - y)^2 ]
//! L(psi) = - E[q] / sg(E|q|) + alpha_1 E[ |pi(s) - a|^2 ],        q = min_i Q_i(s, pi(s))
//! ```
//!
//! The actor and both targets are updated at every `actor_every`-th step. In between, the actor's gradient is
//! zero, but its optimiser still steps: the moments decay and continue to move the weights. With
//! `actor_every = 1` this is the paper's ReBRAC*.

use crate::agent::AgentError;
use crate::algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
use crate::common::{Common, at_least_one, nonnegative};
use crate::networks::{NetworkId, Networks};
use crate::parts::critic::{Aggregate, Critic, CriticConfig, maximise, one_step_target};
use crate::parts::head::Head;
use crate::registry::AgentKind;
use album_data::SegmentConfig;
use album_nn::Var;
use serde::{Deserialize, Serialize};

/// Registry entry.
pub const KIND: AgentKind = AgentKind::new::<Config>(
    "rebrac",
    "Gaussian",
    "arXiv 2305.09836",
    include_str!("../../presets/rebrac.toml"),
);

/// Hyperparameters. Defaults are those of FQL's code base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Networks, batches, discount.
    #[serde(flatten)]
    pub common: Common,
    /// The critic. Without a target network the actor has none either.
    #[serde(flatten)]
    pub critic: CriticConfig,
    /// alpha_1, the weight of behaviour cloning in the actor; chosen per environment.
    pub alpha_actor: f64,
    /// alpha_2, the weight of behaviour cloning in the target; chosen per environment.
    pub alpha_critic: f64,
    /// Steps between updates of the actor and the targets.
    pub actor_every: u64,
    /// sigma, the standard deviation of the noise on target actions.
    pub actor_noise: f64,
    /// c, the clipping bound of this noise.
    pub actor_noise_clip: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            common: Common::default(),
            critic: CriticConfig { q_agg: Aggregate::Min, ..CriticConfig::default() },
            alpha_actor: 0.01,
            alpha_critic: 0.01,
            actor_every: 2,
            actor_noise: 0.2,
            actor_noise_clip: 0.5,
        }
    }
}

impl Setup for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn check(&self) -> Result<(), AgentError> {
        self.critic.check()?;
        nonnegative(&[
            ("alpha_actor", self.alpha_actor),
            ("alpha_critic", self.alpha_critic),
            ("actor_noise", self.actor_noise),
            ("actor_noise_clip", self.actor_noise_clip),
        ])?;
        at_least_one(&[("actor_every", self.actor_every as usize)])
    }

    fn settling_steps(&self) -> Option<f64> {
        Some(self.actor_every as f64 * self.critic.settling_steps(self.common.gamma)?)
    }

    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        let hidden = &self.common.hidden;
        let critic = Critic::new(nets, ["q", "q_target"], sizes.s + sizes.a, hidden, &self.critic);
        let actor = nets.policy("actor", Head::Gaussian(sizes.a).spec(sizes.s, hidden), self.critic.lr);
        let target_network = self.critic.target_network;
        let actor_target =
            if target_network { nets.target("actor_target", actor, self.critic.tau) } else { actor };
        Box::new(Rebrac { config: self.clone(), critic, actor, actor_target })
    }
}

struct Rebrac {
    config: Config,
    critic: Critic,
    actor: NetworkId,
    actor_target: NetworkId,
}

impl Rebrac {
    fn updates_actor(&self, step: u64) -> bool {
        step.is_multiple_of(self.config.actor_every)
    }

    /// Draws eps.
    fn critic_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let c = &self.config;
        let f = |x: f64| x as f32;
        let (s_next, a_data) = (x.s_next(), x.a_next());
        let limit = f(c.actor_noise_clip);
        let noise = (f(c.actor_noise) * x.normal(a_data.cols())).clip(-limit, limit);
        let a_next = (x.tape.apply_frozen(&nets[self.actor_target], s_next).tanh() + noise).clip(-1.0, 1.0);
        let distance = (a_next - a_data).square().sum_cols();
        let q_next = c.critic.q_agg.of(self.critic.target(nets, s_next, a_next));
        let y = one_step_target(x, c.common.gamma, q_next - f(c.alpha_critic) * distance);
        let q = self.critic.online(nets, x.s_a());
        let loss = (q - y).square().mean();
        measures.mean("critic/critic_loss", loss).q(q);
        loss
    }

    fn actor_loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>, measures: &mut Measures<'t>) -> Var<'t> {
        let s = x.s();
        let pi = x.tape.apply(&nets[self.actor], s).tanh();
        let bc = (pi - x.a()).square().sum_cols().mean();
        let q_pi = self.critic.frozen(nets, s, pi).min_cols();
        let loss = maximise(q_pi, Some(0.0)) + self.config.alpha_actor as f32 * bc;
        measures.mean("actor/actor_loss", loss).value("actor/q", q_pi).mean("actor/bc_loss", bc);
        loss
    }
}

impl Algorithm for Rebrac {
    fn segments(&self) -> SegmentConfig {
        self.config.common.one_step()
    }

    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t> {
        let mut measures = x.measures();
        let critic = self.critic_loss(nets, x, &mut measures);
        let updates_actor = self.updates_actor(x.step);
        if !updates_actor && !x.measured {
            return Loss { total: critic, measures };
        }
        let actor = self.actor_loss(nets, x, &mut measures);
        Loss { total: if updates_actor { critic + actor } else { critic }, measures }
    }

    fn decide(&self, nets: &Networks) -> Decide {
        let actor = nets[self.actor].clone();
        Box::new(move |x| x.tape.apply_frozen(&actor, x.s).tanh())
    }

    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        Some((self.critic.q, Aggregate::Min))
    }

    fn moves(&self, _target: NetworkId, step: u64) -> bool {
        self.updates_actor(step)
    }
}
