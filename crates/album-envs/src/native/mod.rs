//! Environments written in Rust. They need neither Python nor MuJoCo.

mod disc;
mod drawing;
mod maze;
mod mudworld;
mod oracle;
pub(crate) mod pointmaze;

use std::collections::BTreeMap;

use crate::env::{Env, EnvShape, FRAME_INTERVAL};
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};
pub use disc::{Motion, advance};
pub use maze::{Maze, SampleGrid};
pub use mudworld::MudWorldEnv;
pub use oracle::Oracle;
pub use pointmaze::PointMaze;

/// Native environments, one per slot, stepped in the calling thread.
#[derive(Debug)]
pub struct NativePool {
    envs: Vec<Box<dyn Env>>,
    shape: EnvShape,
    /// For each slot: the steps of its episode, if that has frames.
    drawn: Vec<Option<u32>>,
    /// Collected by [`wait`](EnvPool::wait).
    answers: Vec<(usize, Answer)>,
    versions: BTreeMap<String, String>,
}

impl NativePool {
    /// One slot for each environment. All must have the same [`EnvShape`].
    pub fn new(envs: Vec<Box<dyn Env>>) -> Self {
        let shape = envs.first().map_or_else(EnvShape::default, |env| env.shape().clone());
        Self { shape, drawn: vec![None; envs.len()], envs, answers: Vec::new(), versions: BTreeMap::new() }
    }

    /// `slots` copies of an environment.
    pub fn cloned(env: &(impl Env + Clone + 'static), slots: usize) -> Self {
        Self::new((0..slots).map(|_| Box::new(env.clone()) as Box<dyn Env>).collect())
    }
}

impl EnvPool for NativePool {
    fn shape(&self) -> &EnvShape {
        &self.shape
    }

    fn slots(&self) -> usize {
        self.envs.len()
    }

    fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn is_next(&self, _slot: usize, waiting: usize) -> bool {
        waiting > 0
    }

    fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError> {
        let observation = self.envs[slot].reset(seed)?;
        self.drawn[slot] = frames.then_some(0);
        let frame = if frames { self.envs[slot].frame() } else { None };
        // An uncollected answer belongs to the episode that this reset replaces.
        self.answers.retain(|&(other, _)| other != slot);
        self.answers.push((slot, Answer::Started { observation, frame }));
        Ok(())
    }

    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        let mut step = self.envs[slot].step(action)?;
        if let Some(steps) = &mut self.drawn[slot] {
            *steps += 1;
            if steps.is_multiple_of(FRAME_INTERVAL) || step.terminated || step.truncated {
                step.frame = self.envs[slot].frame();
            }
        }
        self.answers.push((slot, Answer::Stepped(step)));
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        self.answers.sort_by_key(|&(slot, _)| slot);
        Ok(std::mem::take(&mut self.answers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of an episode by step, with the oracle as the policy.
    fn frames(frames: bool) -> (PointMaze, Vec<Option<crate::Frame>>) {
        let maze = PointMaze::new(&"pointmaze-medium-navigate-singletask-task3-v0".parse().unwrap()).unwrap();
        let oracle = Oracle::new(maze.maze().clone());
        let mut pool = NativePool::cloned(&maze, 1);
        pool.reset(0, 4, frames).unwrap();
        let mut found = Vec::new();
        loop {
            let (observation, over) = match pool.wait().unwrap().remove(0).1 {
                Answer::Started { observation, frame } => {
                    found.push(frame);
                    (observation, false)
                }
                Answer::Stepped(step) => {
                    found.push(step.frame);
                    (step.observation, step.terminated || step.truncated)
                }
                Answer::Lost { reason } => panic!("{reason}"),
            };
            if over {
                return (maze, found);
            }
            let position = [observation[0].into(), observation[1].into()];
            let action = oracle.direction(position, maze.task().goal.center());
            pool.step(0, &action.map(|x| x as f32)).unwrap();
        }
    }

    #[test]
    fn start_end_and_every_third_step_have_a_frame() {
        let (_, found) = frames(true);
        let last = found.len() - 1;
        for (step, frame) in found.iter().enumerate() {
            assert_eq!(frame.is_some(), step % 3 == 0 || step == last, "step {step}");
        }
        assert!(frames(false).1.iter().all(Option::is_none));
    }

    #[test]
    fn frames_show_walls_goal_path_and_disc() {
        let (env, found) = frames(true);
        let (first, last) = (found[0].as_ref().unwrap(), found[found.len() - 1].as_ref().unwrap());
        assert_eq!((first.width, first.height), (192, 192));
        let colour = |frame: &crate::Frame, [x, y]: [f64; 2]| {
            let pixel = |metres: f64| ((metres / 4.0 + 1.5) * 24.0) as usize;
            let at = 3 * ((frame.height - 1 - pixel(y)) * frame.width + pixel(x));
            <[u8; 3]>::try_from(&frame.rgb[at..at + 3]).unwrap()
        };
        let [start, goal] = [env.task().start, env.task().goal].map(|cell| cell.center());
        for cell in env.maze().wall_cells() {
            assert_eq!(colour(last, cell.center()), drawing::WALL);
        }
        // Points within 1.5 m that have a colour.
        let around = |frame, [x, y]: [f64; 2], colour_of: [u8; 3]| {
            let shifts = (-12..=12).map(|n| f64::from(n) / 8.0);
            let points = shifts.clone().flat_map(|dx| shifts.clone().map(move |dy| [x + dx, y + dy]));
            points.filter(|&point| colour(frame, point) == colour_of).count()
        };
        assert!(around(first, start, drawing::DISC) > 50 && around(first, start, drawing::PATH) == 0);
        assert!(around(last, start, drawing::DISC) == 0 && around(last, start, drawing::PATH) > 5);
        assert!(around(first, goal, drawing::DISC) == 0 && around(first, goal, drawing::GOAL) > 100);
        assert!(around(last, goal, drawing::DISC) > 50 && around(last, goal, drawing::GOAL) > 20);
    }
}
