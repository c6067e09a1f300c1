//! The training loop.

use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use album_agents::{Agent, AgentState, Metrics};
use album_data::{Dataset, Sampler, Segments};
use album_envs::EnvPool;

use crate::assess::Assessor;
use crate::best::Best;
use crate::checkpoint::{self, Progress};
use crate::critic::{CriticStatistics, DataStatistics};
use crate::error::TrainError;
use crate::evaluate::{Evaluation, EvaluationPlan, Outcome, episode_seeds, evaluate};
use crate::guard;
use crate::identity::Identity;
use crate::logs::Logs;
use crate::result::RunResult;
use crate::run_dir::RunDir;
use crate::schedule::Schedule;
use crate::signals::StopFlag;
use crate::state_file::weights_sha256;
use crate::value_map::{ValueMap, ValuePoints};
use crate::watch::Watch;

/// Where and how policies are evaluated.
#[derive(Debug)]
pub struct Evaluator {
    /// Environments of the task, used in parallel. Results do not depend on how many.
    pub envs: Box<dyn EnvPool>,
    /// Episodes per evaluation.
    pub episodes: usize,
    /// Number of episodes whose path is recorded.
    pub paths: usize,
    /// Whether training continues during an evaluation. This affects only when the result is known.
    pub background: bool,
    /// The returns that correspond to scores of 0 and 100.
    pub score_range: Option<[f64; 2]>,
}

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// Training starts or resumes after `step` updates.
    Started {
        /// Updates done.
        step: u64,
        /// Total number of updates.
        total: u64,
    },
    /// Something is wrong, but the run continues.
    Warning(String),
    /// A heartbeat, several times a second.
    Progress {
        /// Updates done.
        step: u64,
        /// Mean milliseconds per update since the start or resumption.
        ms_per_step: f64,
    },
    /// Metrics were logged.
    Logged {
        /// Updates done.
        step: u64,
        /// The metrics of the last update.
        metrics: &'a Metrics,
        /// The logged row, including held-out metrics and timings, by column name.
        row: &'a [(String, f64)],
        /// Mean milliseconds per update since the last log.
        ms_per_step: f64,
    },
    /// An evaluation begins.
    Evaluating {
        /// Updates done.
        step: u64,
    },
    /// An evaluation is complete.
    Evaluated {
        /// The episodes.
        evaluation: &'a Evaluation,
        /// Time taken.
        seconds: f64,
        /// Whether training continued in the meantime.
        background: bool,
    },
    /// A checkpoint was written.
    Saved {
        /// Updates done.
        step: u64,
        /// The checkpoint.
        path: &'a Path,
    },
    /// The run stopped on request.
    Stopped {
        /// Updates done.
        step: u64,
    },
}

/// A training run.
///
/// The checkpoints in the directory decide whether it starts or resumes; the result is the same, bit for bit.
pub struct Trainer<'a> {
    /// The agent, freshly built from the configuration.
    pub agent: &'a mut dyn Agent,
    /// The training data.
    pub dataset: &'a Dataset,
    /// The group of each transition, where updates see groups equally often; otherwise all transitions are alike.
    pub groups: Option<Vec<u32>>,
    /// Held-out data; the agent's metrics on it are logged beside those of training.
    pub held_out: Option<&'a Dataset>,
    /// The run directory.
    pub run: &'a RunDir,
    /// The identity of the run.
    pub identity: &'a Identity,
    /// When to log, evaluate and save.
    pub schedule: Schedule,
    /// How to evaluate; `None` for no evaluations.
    pub evaluator: Option<Evaluator>,
    /// Points at which V is recorded at every evaluation.
    pub value_points: Option<ValuePoints>,
    /// Whether to compare V with recorded returns and with the range that the rewards allow.
    pub watch: bool,
    /// Adds further metrics of the agent to each row of the log.
    pub probe: Option<Box<Probe<'a>>>,
    /// Asks the run to stop.
    pub stop: StopFlag,
    /// Receives the events of the run.
    pub observer: &'a mut dyn FnMut(&Event<'_>),
}

/// See [`Trainer::probe`].
pub type Probe<'a> = dyn FnMut(&mut dyn Agent, &mut Metrics) + 'a;

/// Batches of held-out data averaged in each row of `validation/*`.
const VALIDATION_BATCHES: u64 = 4;

/// Interval of heartbeats.
const PROGRESS: Duration = Duration::from_millis(200);

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("run", &self.run)
            .field("identity", &self.identity)
            .field("schedule", &self.schedule)
            .finish_non_exhaustive()
    }
}

impl Trainer<'_> {
    /// Trains to the end of the schedule or until the flag is raised, and writes `result.json`.
    ///
    /// [`RunResult::finished`] tells which. The state is saved in both cases.
    pub fn train(mut self) -> Result<RunResult, TrainError> {
        self.schedule.check()?;
        let segments = Segments::new(self.agent.segments())?;
        segments.fits(self.dataset)?;
        let (mut progress, mut saved) = self.restore()?;
        let mut warnings = Vec::new();
        let mut logs = Logs::open(self.run, &progress.logs, &mut warnings)?;
        warnings.into_iter().for_each(|warning| (self.observer)(&Event::Warning(warning)));

        let sampler = match &self.groups {
            Some(groups) => Sampler::balanced(self.identity.seed, groups),
            None => Sampler::new(self.identity.seed, self.dataset.len()),
        };
        let mut batch = segments.batch(self.dataset, self.agent.batch_size());
        let mut metrics = Metrics::new();
        let mut validation = self.held_out.map(|held_out| Assessor::new(self.agent, held_out)).transpose()?;
        let mut held_out_metrics = Metrics::new();
        let gamma = self.agent.segments().gamma;
        let watched = |data: &Dataset| Watch::new(data, gamma, self.schedule.steps);
        let mut watch = self.watch.then(|| watched(self.dataset));
        let watch_held_out = self.held_out.filter(|_| self.watch).map(watched);
        let total = self.schedule.steps;
        let (begin, wall_before) = (Instant::now(), progress.wall_seconds);
        let wall = move || wall_before + begin.elapsed().as_secs_f64();
        let mut first = Stopwatch::default();
        let mut since_log = Stopwatch::default();
        let mut last_sign = begin;
        (self.observer)(&Event::Started { step: progress.step, total });

        // Determined once: during an evaluation, the evaluator is with its thread.
        let evaluates = self.evaluator.is_some();
        let mut running: Option<Running> = None;
        let finished = loop {
            // Whatever is due after this many updates.
            let step = progress.step;
            let evaluated = progress.evaluations.last().map(|evaluation| evaluation.step);
            let mut pending = evaluates && self.schedule.evaluates(step) && evaluated != Some(step);
            if let Some(evaluation) = &running
                && (evaluation.is_done()
                    || pending
                    || step == total
                    || self.schedule.saves(step)
                    || self.stop.is_set())
                && !self.record(running.take(), &mut progress, &mut logs)?
            {
                // The evaluation was cut short: go back to the checkpoint from which it can be repeated.
                (progress, _) = self.restore()?;
                break false;
            }
            if pending && !self.stop.is_set() {
                self.checked_state(&progress, saved)?;
                let evaluation = self.begin_evaluation(step)?;
                if evaluation.as_ref().is_some_and(|e| e.background) && step < total {
                    if saved != Some(step) {
                        saved = Some(self.save(&mut progress, &mut logs, saved, wall())?);
                    }
                    running = evaluation;
                    pending = false;
                } else if self.record(evaluation, &mut progress, &mut logs)? {
                    (pending, saved) = (false, saved.filter(|&at| at != step));
                }
            }
            let patient = self.schedule.is_patient(step, progress.best.as_ref().map(|best| best.step));
            let done = (step == total && !pending) || (!patient && running.is_none());
            let stopping = !done && self.stop.is_set() && running.is_none();
            if (done || stopping || self.schedule.saves(step)) && saved != Some(step) {
                self.compare(&mut progress, validation.as_mut());
                saved = Some(self.save(&mut progress, &mut logs, saved, wall())?);
            }
            if done || stopping {
                break done;
            }

            // One update.
            let start = Instant::now();
            sampler.fill(step, batch.indices_mut());
            segments.gather(self.dataset, &mut batch);
            guard::batch(&batch).map_err(|bad| bad.at(step, saved))?;
            let logging = self.schedule.logs(step + 1);
            let asked = (logging || self.schedule.checks(step + 1)).then_some(&mut metrics);
            let asking = asked.is_some();
            let loss = self.agent.update(&batch, step, asked);
            self.check_device(step, saved)?;
            progress.step += 1;
            guard::loss(loss).map_err(|bad| bad.at(progress.step, saved))?;
            if asking {
                guard::metrics(&metrics).map_err(|bad| bad.at(progress.step, saved))?;
            }
            let now = Instant::now();
            progress.train_seconds += (now - start).as_secs_f64();
            first.add(now - start);
            since_log.add(now - start);
            if logging {
                let (step, ms_per_step) = (progress.step, since_log.take());
                if let Some(validation) = &mut validation {
                    validation.assess(self.agent, VALIDATION_BATCHES, &mut held_out_metrics);
                }
                if let Some(watch) = &mut watch {
                    if let Some(warning) = watch.alarm(step, &metrics) {
                        (self.observer)(&Event::Warning(warning));
                    }
                    watch.measure(self.agent, &mut metrics);
                }
                if let Some(probe) = &mut self.probe {
                    probe(self.agent, &mut metrics);
                }
                if let Some(watch) = &watch_held_out {
                    watch.measure(self.agent, &mut held_out_metrics);
                }
                let row = logs.training(step, &metrics, &held_out_metrics, ms_per_step, wall())?;
                (self.observer)(&Event::Logged { step, metrics: &metrics, row: &row, ms_per_step });
            }
            if now - last_sign >= PROGRESS {
                last_sign = now;
                (self.observer)(&Event::Progress { step: progress.step, ms_per_step: first.mean() });
            }
        };
        if !finished {
            (self.observer)(&Event::Stopped { step: progress.step });
        }
        progress.wall_seconds = wall();
        if finished && let Some(best) = progress.best.as_ref().filter(|best| best.step < progress.step) {
            checkpoint::at(&self.run.checkpoints(), best.step)?.restore(self.agent)?;
        }
        self.finish(&progress, finished)
    }

    /// Compares the agent, which is about to be saved, with the best one so far, if that is kept.
    fn compare(&mut self, progress: &mut Progress, validation: Option<&mut Assessor<'_>>) {
        if !self.schedule.keep_best {
            return;
        }
        let evaluated = progress.evaluations.last().filter(|summary| summary.step == progress.step);
        let found = match (evaluated, validation) {
            (Some(summary), _) => Some(Best::of_evaluation(summary)),
            (None, Some(validation)) if progress.evaluations.is_empty() => {
                let mut metrics = Metrics::new();
                validation.assess(self.agent, VALIDATION_BATCHES, &mut metrics);
                Best::of_held_out(progress.step, &metrics)
            }
            _ => None,
        };
        if let Some(found) = found.filter(|found| found.beats(progress.best.as_ref())) {
            progress.best = Some(found);
        }
    }

    /// Restores the latest checkpoint, if there is one.
    fn restore(&mut self) -> Result<(Progress, Option<u64>), TrainError> {
        let latest = checkpoint::latest(&self.run.checkpoints())?;
        let Some(checkpoint) = latest.checkpoint else {
            // With only damaged checkpoints, starting from scratch would hide the loss.
            return latest.damaged.into_iter().next().map_or(Ok((Progress::default(), None)), Err);
        };
        for error in latest.damaged {
            (self.observer)(&Event::Warning(format!(
                "{error}; it is set aside, and the run resumes from the checkpoint of step {}",
                checkpoint.step()
            )));
        }
        checkpoint.check(self.identity)?;
        let (step, end) = (checkpoint.step(), self.schedule.steps);
        if step > end {
            return Err(TrainError::BeyondEnd { path: checkpoint.path, step, end });
        }
        checkpoint.restore(self.agent)?;
        checkpoint::set_aside_after(&self.run.checkpoints(), step)?;
        Ok((checkpoint.manifest.progress, Some(step)))
    }

    /// The agent's state, if all of it is finite.
    fn checked_state(&self, progress: &Progress, saved: Option<u64>) -> Result<AgentState, TrainError> {
        let state = self.agent.state();
        self.check_device(progress.step, saved)?;
        guard::state(&state).map_err(|bad| bad.at(progress.step, saved))?;
        Ok(state)
    }

    /// Whether the agent's device still works.
    fn check_device(&self, step: u64, checkpoint: Option<u64>) -> Result<(), TrainError> {
        self.agent.failure().map_or(Ok(()), |source| Err(TrainError::Device { step, source, checkpoint }))
    }

    /// Hands a copy of the policy to an evaluation thread.
    fn begin_evaluation(&mut self, step: u64) -> Result<Option<Running>, TrainError> {
        let Some(evaluator) = self.evaluator.take() else { return Ok(None) };
        let Evaluator { mut envs, episodes, paths, background, score_range } = evaluator;
        (self.observer)(&Event::Evaluating { step });
        let mut policy = self.agent.policy();
        let seeds = episode_seeds(self.identity.seed, step, episodes);
        let plan = EvaluationPlan { step, seeds, paths, videos: 0 };
        let stop = self.stop.clone();
        let work = move || {
            let outcome = evaluate(policy.as_mut(), envs.as_mut(), &plan, &stop);
            (Evaluator { envs, episodes, paths, background, score_range }, outcome)
        };
        let thread = thread::Builder::new().spawn(work).map_err(TrainError::Thread)?;
        let values = self.value_points.as_ref().and_then(|at| ValueMap::record(self.agent, at, step));
        Ok(Some(Running { background, values, thread }))
    }

    /// Waits for an evaluation and logs it; `false` if it was cut short by a stop request.
    fn record(
        &mut self,
        running: Option<Running>,
        progress: &mut Progress,
        logs: &mut Logs,
    ) -> Result<bool, TrainError> {
        let Some(Running { background, values, thread }) = running else { return Ok(false) };
        let (evaluator, outcome) = thread.join().map_err(|_| TrainError::EvaluationPanicked)?;
        self.evaluator = Some(evaluator);
        let Some(Outcome { evaluation, seconds, warnings, .. }) = outcome? else { return Ok(false) };
        warnings.into_iter().for_each(|warning| (self.observer)(&Event::Warning(warning)));
        logs.evaluation(&evaluation)?;
        if let Some(map) = values {
            logs.value_map(&map)?;
        }
        progress.evaluations.push(evaluation.summary());
        progress.eval_seconds += seconds;
        let background = background && evaluation.step < progress.step;
        (self.observer)(&Event::Evaluated { evaluation: &evaluation, seconds, background });
        Ok(true)
    }

    fn save(
        &mut self,
        progress: &mut Progress,
        logs: &mut Logs,
        saved: Option<u64>,
        wall_seconds: f64,
    ) -> Result<u64, TrainError> {
        progress.wall_seconds = wall_seconds;
        let state = self.checked_state(progress, saved)?;
        progress.logs = logs.sync()?;
        let directory = self.run.checkpoints();
        let path = checkpoint::save(&directory, self.identity, progress, &state)?;
        // Failing to delete an old one (a reader on a network file system may hold it) is no reason to stop.
        let best = progress.best.as_ref().map(|best| best.step);
        if let Err(error) = checkpoint::prune(&directory, self.schedule.keep, best) {
            (self.observer)(&Event::Warning(error.to_string()));
        }
        (self.observer)(&Event::Saved { step: progress.step, path: &path });
        Ok(progress.step)
    }

    fn finish(&mut self, progress: &Progress, finished: bool) -> Result<RunResult, TrainError> {
        let weights = weights_sha256(&self.agent.state());
        let mut result = RunResult::new(self.identity, progress, finished, self.agent.parameters(), weights);
        result.device = self.agent.device();
        result.data_episodes = Some(self.dataset.episodes().len());
        result.held_out_episodes = self.held_out.map(|data| data.episodes().len());
        if finished {
            result.learned_values = CriticStatistics::of(self.agent, self.dataset)?;
            result.data_values = Some(DataStatistics::of(self.dataset, self.agent.segments().gamma)?);
        }
        if let Some(evaluator) = &self.evaluator {
            result = result.with_score(evaluator.score_range);
            result = result.with_versions(evaluator.envs.versions());
        }
        let path = self.run.file(RESULT);
        let mut text =
            serde_json::to_vec_pretty(&result).map_err(|e| TrainError::damaged(&path, e.to_string()))?;
        text.push(b'\n');
        self.run.write(RESULT, &text)?;
        Ok(result)
    }
}

/// An evaluation running on its own thread.
struct Running {
    background: bool,
    /// The value map at the same step.
    values: Option<ValueMap>,
    /// Returns the evaluator.
    thread: JoinHandle<(Evaluator, Result<Option<Outcome>, TrainError>)>,
}

impl Running {
    fn is_done(&self) -> bool {
        self.thread.is_finished()
    }
}

pub(crate) const RESULT: &str = "result.json";

/// Mean milliseconds per operation.
#[derive(Default)]
struct Stopwatch {
    time: Duration,
    count: u32,
}

impl Stopwatch {
    fn add(&mut self, time: Duration) {
        self.time += time;
        self.count += 1;
    }

    fn mean(&self) -> f64 {
        1e3 * self.time.as_secs_f64() / f64::from(self.count.max(1))
    }

    fn take(&mut self) -> f64 {
        let mean = self.mean();
        *self = Self::default();
        mean
    }
}
