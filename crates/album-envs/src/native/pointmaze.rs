//! OGBench's pointmaze without MuJoCo.

use album_base::rng;
use album_data::ogbench::{MazeTask, TaskName, within};

use super::disc::advance;
use super::drawing::draw;
use super::maze::Maze;
use crate::env::{Env, EnvShape, Frame, Step};
use crate::error::EnvError;

/// Maximum distance of a start from the centre of its cell along each axis, in metres.
pub(crate) const NOISE: f64 = 1.0;
/// A goal counts as reached within this distance, in metres.
pub(crate) const TOLERANCE: f64 = 1.0;

/// A disc that must navigate a maze to its goal.
///
/// The observation is its position `[x, y]`; an action moves it by up to 0.2 m along each axis ([`advance`]). It starts
/// near the centre of a cell and solves the task within 1 m of the goal. As in `ogbench` since 1.2.0, success,
/// termination and reward (0 if solved, else -1) are those of the state before the step.
#[derive(Debug, Clone)]
pub struct PointMaze {
    maze: Maze,
    task: MazeTask,
    shape: EnvShape,
    /// The positions of the episode so far.
    path: Vec<[f64; 2]>,
    /// Whether the episode is still running.
    running: bool,
}

impl PointMaze {
    /// The environment of a pointmaze task.
    pub fn new(task: &TaskName) -> Result<Self, EnvError> {
        let environment = task.environment();
        let size = environment.point_maze().ok_or_else(|| EnvError::NotNative { task: task.to_string() })?;
        Ok(Self {
            maze: Maze::new(size),
            task: size.tasks()[task.task() - 1],
            shape: EnvShape::of(environment),
            path: Vec::new(),
            running: false,
        })
    }

    /// The map.
    pub fn maze(&self) -> &Maze {
        &self.maze
    }

    /// The start and the goal.
    pub fn task(&self) -> MazeTask {
        self.task
    }
}

impl Env for PointMaze {
    fn shape(&self) -> &EnvShape {
        &self.shape
    }

    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError> {
        let mut rng = rng::stream(episode_seed, "pointmaze start");
        let position = near(&mut rng, self.task.start.center());
        self.path.clear();
        self.path.push(position);
        self.running = true;
        Ok(observation(position))
    }

    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError> {
        self.shape.check_action(action)?;
        let Some(&position) = self.path.last().filter(|_| self.running) else {
            return Err(EnvError::NoEpisode);
        };
        let success = within(position, self.task.goal.center(), TOLERANCE);
        let position = advance(&self.maze, position, [action[0].into(), action[1].into()]).position;
        let truncated = self.path.len() >= self.shape.horizon;
        self.path.push(position);
        self.running = !success && !truncated;
        let reward = if success { 0.0 } else { -1.0 };
        let observation = observation(position);
        Ok(Step { observation, reward, terminated: success, truncated, success: Some(success), frame: None })
    }

    fn frame(&self) -> Option<Frame> {
        Some(draw(&self.maze, self.task.goal.center(), TOLERANCE, &self.path))
    }
}

/// A point up to [`NOISE`] away along each axis.
pub(crate) fn near(rng: &mut rand_chacha::ChaCha8Rng, center: [f64; 2]) -> [f64; 2] {
    center.map(|x| x + NOISE * (2.0 * rng::unit(rng) - 1.0))
}

fn observation(position: [f64; 2]) -> Vec<f32> {
    position.iter().map(|&x| x as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::oracle::Oracle;
    use album_data::ogbench::MazeSize;

    fn env(name: &str) -> PointMaze {
        PointMaze::new(&name.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_oracle_solves_every_task() {
        for size in MazeSize::ALL {
            for number in 1..=5 {
                let mut env = env(&format!("pointmaze-{size}-navigate-singletask-task{number}-v0"));
                let oracle = Oracle::new(env.maze().clone());
                let mut observation = env.reset(number).unwrap();
                let start = env.task().start.center();
                for axis in 0..2 {
                    assert!((f64::from(observation[axis]) - start[axis]).abs() <= 1.0);
                }
                let goal = env.task().goal.center();
                let mut before = observation.clone();
                let last = loop {
                    let position = [observation[0].into(), observation[1].into()];
                    let step = env.step(&oracle.direction(position, goal).map(|x| x as f32)).unwrap();
                    if step.terminated || step.truncated {
                        break step;
                    }
                    assert_eq!(step.reward, -1.0);
                    before = observation;
                    observation = step.observation;
                };
                assert!(
                    last.success == Some(true) && last.terminated && !last.truncated && last.reward == 0.0
                );
                // Success refers to the state before the last step, not an earlier one.
                let distance = |o: &[f32]| (f64::from(o[0]) - goal[0]).hypot(f64::from(o[1]) - goal[1]);
                assert!(distance(&observation) <= 1.0 + 1e-6 && distance(&before) > 1.0 - 1e-6);
            }
        }
    }

    #[test]
    fn episodes_end_at_the_horizon() {
        let mut env = env("pointmaze-medium-navigate-singletask-v0");
        assert!(matches!(env.step(&[0.0, 0.0]), Err(EnvError::NoEpisode)));
        env.reset(0).unwrap();
        for _ in 0..999 {
            assert!(!env.step(&[0.0, 0.0]).unwrap().truncated);
        }
        assert!(env.step(&[0.0, 0.0]).unwrap().truncated);
        assert!(matches!(env.step(&[0.0, 0.0]), Err(EnvError::NoEpisode)));
    }

    #[test]
    fn seeds_fix_the_start() {
        let mut env = env("pointmaze-giant-navigate-singletask-task3-v0");
        let first = env.reset(5).unwrap();
        assert_eq!(env.reset(5).unwrap(), first);
        assert_ne!(env.reset(6).unwrap(), first);
    }

    #[test]
    fn bad_actions() {
        let mut env = env("pointmaze-medium-navigate-singletask-v0");
        env.reset(0).unwrap();
        let message = env.step(&[0.0]).unwrap_err().to_string();
        assert_eq!(message, "action: found 1 numbers, expected 2");
        let message = env.step(&[0.0, f32::NAN]).unwrap_err().to_string();
        assert_eq!(message, "action: component 1 is NaN, expected a finite number");
    }

    #[test]
    fn other_environments_are_refused() {
        let error = PointMaze::new(&"antmaze-large-navigate-singletask-v0".parse().unwrap()).unwrap_err();
        assert!(error.to_string().starts_with("antmaze-large-navigate-singletask-v0: album has no native"));
    }
}
