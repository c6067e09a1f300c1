//! Training in memory: arrays in, a policy out, without files or environments.

use crate::config::Layers;
use crate::error::Error;
use crate::run::Trained;
use album_agents::{Agent, AgentKind, Learner, Moment, Policy};
use album_data::ActionSpace;
use album_data::{Dataset, Sampler, Segments, View};
use album_nn::Pool;
use album_train::weights_sha256;

/// A training configuration. Hyperparameters have the names of the TOML keys and default to the agent's own
/// defaults.
pub struct Fit {
    kind: &'static AgentKind,
    settings: Layers,
    steps: u64,
    seed: u64,
    threads: usize,
}

impl std::fmt::Debug for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fit { kind, steps, seed, .. } = self;
        f.debug_struct("Fit")
            .field("agent", &kind.name)
            .field("steps", steps)
            .field("seed", seed)
            .finish_non_exhaustive()
    }
}

impl Fit {
    /// Trains the agent of this name: `album`, `iql`, ...
    pub fn new(agent: &str) -> Result<Self, Error> {
        let kind = AgentKind::find(agent)?;
        Ok(Fit { kind, settings: Layers::over(kind.defaults()?), steps: 10_000, seed: 0, threads: 0 })
    }

    /// Sets one hyperparameter.
    pub fn set(mut self, key: &str, value: impl Into<toml::Value>) -> Result<Self, Error> {
        self.settings.merge(toml::Table::from_iter([(key.to_owned(), value.into())]), self.kind.name)?;
        Ok(self)
    }

    /// Refuses hyperparameters out of range, as [`Self::run`] would.
    pub fn check(&self) -> Result<(), Error> {
        self.kind.setup(&self.settings.table)?;
        Ok(())
    }

    /// Number of gradient steps; 10,000 by default.
    pub fn steps(self, steps: u64) -> Self {
        Fit { steps, ..self }
    }

    /// The master seed; 0 by default. Equal seeds give equal weights for any number of threads.
    pub fn seed(self, seed: u64) -> Self {
        Fit { seed, ..self }
    }

    /// Worker threads; all processors by default.
    pub fn threads(self, threads: usize) -> Self {
        Fit { threads, ..self }
    }

    /// Trains.
    pub fn run(self, data: &Dataset) -> Result<Fitted, Error> {
        let setup = self.kind.setup(&self.settings.table)?;
        let mut agent = Learner::new(setup.as_ref(), data, self.steps, self.seed, &Pool::new(self.threads))?;
        let segments = Segments::new(agent.segments()).map_err(|e| Error::Config(e.to_string()))?;
        segments.fits(data).map_err(|e| Error::Load(e.to_string()))?;
        let sampler = Sampler::new(self.seed, data.len());
        let mut batch = segments.batch(data, agent.batch_size());
        for step in 0..self.steps {
            sampler.fill(step, batch.indices_mut());
            segments.gather(data, &mut batch);
            let loss = agent.update(&batch, step, None);
            if !loss.is_finite() {
                return Err(Error::Numerical(format!(
                    "step {step}: the loss is {loss}; try a smaller learning rate"
                )));
            }
        }
        Ok(Fitted::new(agent))
    }
}

/// A trained agent.
pub struct Fitted {
    agent: Learner,
    policy: Box<dyn Policy>,
    observation_dim: usize,
    /// Episode id for the next call, so that stochastic policies draw fresh noise.
    acted: u64,
}

impl std::fmt::Debug for Fitted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fitted").field("observation_dim", &self.observation_dim).finish_non_exhaustive()
    }
}

impl From<Trained> for Fitted {
    fn from(trained: Trained) -> Self {
        Fitted::new(trained.agent)
    }
}

impl Fitted {
    fn new(agent: Learner) -> Self {
        let observation_dim = agent.blueprint().encoding.observation_dim();
        Fitted { policy: agent.policy(), agent, observation_dim, acted: 0 }
    }

    /// Dimension of an observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// The action space: bounds in physical units, or a number of choices.
    pub fn action_space(&self) -> ActionSpace {
        self.agent.blueprint().action_space()
    }

    /// The actions for a batch of observations. Each row counts as the first step of a new episode.
    pub fn act(&mut self, observations: &[f32]) -> Vec<f32> {
        let rows = observations.len() / self.observation_dim;
        let episodes = self.acted..self.acted + rows as u64;
        self.acted = episodes.end;
        let moments: Vec<Moment> = episodes.map(|episode| Moment { episode, step: 0 }).collect();
        self.act_at(observations, &moments)
    }

    /// The actions for observations at given steps of given episodes. Policies that plan several actions at
    /// once continue the plan of the episode.
    pub fn act_at(&mut self, observations: &[f32], moments: &[Moment]) -> Vec<f32> {
        let mut actions = Vec::new();
        self.policy.act(observations, moments, &mut actions);
        actions
    }

    /// V of a batch of observations in units of the data's rewards, if the agent learns a state value.
    pub fn value(&mut self, observations: &[f32]) -> Option<Vec<f32>> {
        let rows = observations.len() / self.observation_dim;
        self.agent.value(View::new(observations, rows, self.observation_dim))
    }

    /// Q of state-action pairs in units of the data's rewards, if the agent learns Q of single actions.
    /// Actions are as [`Self::act`] returns them.
    pub fn q(&mut self, observations: &[f32], actions: &[f32]) -> Option<Vec<f32>> {
        let (rows, width) = (observations.len() / self.observation_dim, self.action_space().dim());
        let (observations, actions) =
            (View::new(observations, rows, self.observation_dim), View::new(actions, rows, width));
        self.agent.q(observations, actions)
    }

    /// The SHA-256 of all weights; equal data, configuration and seed give equal hashes.
    pub fn weights_sha256(&self) -> String {
        weights_sha256(&self.agent.state())
    }
}
