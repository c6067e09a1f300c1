//! Runs updates on a device: losses are recorded as on the native tape, but computed where the networks are.

use crate::agent::NetworkState;
use crate::encoding::Encoding;
use crate::networks::Networks;
use album_data::{Batch, Dataset, Episodes};
use album_nn::{Pool, Tape};
use album_xla::{Group, Seat, Step, Table, UpdateMetrics, XlaError};
use std::cell::RefCell;
use std::sync::Arc;

/// The networks of a learner on a device.
pub(crate) struct OnDevice {
    seat: Seat,
    /// Records the losses instead of computing them.
    pub(crate) tape: Tape,
    /// Locates batches in the device's copy of the dataset, if there is one.
    pub(crate) data: Option<DeviceData>,
    place: Place,
    /// The first error, if any.
    failure: RefCell<Option<XlaError>>,
}

/// Where the latest weights are.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Host,
    Device,
    Both,
}

impl OnDevice {
    pub(crate) fn new(group: &Arc<Group>, nets: &Networks, pool: &Pool) -> Result<Self, XlaError> {
        let seat = group.sit(nets.on_device())?;
        let changing = seat.nets().iter().filter(|net| net.role != album_xla::Role::Fixed);
        let tape = Tape::that_defers(pool, changing.map(|net| net.id).collect());
        Ok(OnDevice { seat, tape, data: None, place: Place::Host, failure: RefCell::new(None) })
    }

    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }

    /// Copies the encoded states and the actions to the device, for batches to be gathered there.
    pub(crate) fn lend(&mut self, data: &Dataset, encoding: &Encoding, seed: u64) -> Result<(), XlaError> {
        let episodes = data.episodes();
        let (mut states, mut actions) = (Vec::new(), Vec::new());
        for episode in 0..episodes.len() {
            let rows = data.episode_states(episode);
            let from = states.len();
            states.resize(from + rows.rows() * encoding.dim(), 0.0);
            encoding.encode(rows, &mut states[from..]);
            actions.extend_from_slice(data.episode_actions(episode).data());
        }
        let hash = data.content_hash();
        // Fourier features are drawn from the seed; otherwise the tables are the same for all seeds.
        let drawn = if encoding.frequencies().is_empty() { String::new() } else { format!(" {seed}") };
        let mut tables = Vec::new();
        for (key, width, rows) in [
            (format!("states {hash}{drawn}"), encoding.dim(), states),
            (format!("actions {hash}"), data.action_dim(), actions),
        ] {
            tables.push(Table { key, width, rows });
        }
        self.seat.lend(tables)?;
        self.data = Some(DeviceData(episodes.clone()));
        Ok(())
    }

    pub(crate) fn failure(&self) -> Option<XlaError> {
        self.failure.borrow().clone()
    }

    /// Keeps the first error; later ones are consequences.
    fn note<T>(&self, result: Result<T, XlaError>) -> Option<T> {
        result.map_err(|error| self.failure.borrow_mut().get_or_insert(error).clone()).ok()
    }

    /// Invalidates the device's copy after the host's weights have changed.
    pub(crate) fn forget(&mut self) {
        self.place = Place::Host;
    }

    /// Runs one update; `None` if that failed.
    pub(crate) fn run(
        &mut self,
        nets: &mut Networks,
        number: u64,
        step: Step,
        factor: f64,
    ) -> Option<UpdateMetrics> {
        let fresh = (self.place == Place::Host).then(|| {
            let mut states = nets.state();
            let tensors = states.iter_mut().flat_map(NetworkState::tensors_mut);
            tensors.map(|tensor| std::mem::take(&mut tensor.data)).collect()
        });
        let rates = nets.advance(factor);
        self.place = Place::Device;
        self.note(self.seat.run(number, step, &rates, fresh))
    }

    /// The state of all networks on the device; `None` if the host's is current, or the device has failed.
    pub(crate) fn newer(&self, nets: &Networks) -> Option<Vec<NetworkState>> {
        if self.place != Place::Device {
            return None;
        }
        let mut numbers = self.note(self.seat.read())?.into_iter();
        let mut states = nets.state();
        for tensor in states.iter_mut().flat_map(NetworkState::tensors_mut) {
            tensor.data = numbers.next()?;
        }
        Some(states)
    }

    /// Copies the device's weights to the host.
    pub(crate) fn settle(&mut self, nets: &mut Networks) {
        if let Some(states) = self.newer(nets) {
            let loaded = nets.load(&states);
            debug_assert!(loaded.is_ok(), "the networks' own state fits them");
            self.place = Place::Both;
        }
    }
}

/// Index of the table of all encoded states, episode after episode. An episode has one more state than actions.
pub(crate) const STATES: usize = 0;
/// Index of the table of all actions, episode after episode.
pub(crate) const ACTIONS: usize = 1;

/// Finds the rows of a batch in the tables.
pub(crate) struct DeviceData(Episodes);

impl DeviceData {
    /// The rows of blocks `from..to` of `[s; s'; s_K]`, the states of a batch.
    pub(crate) fn states(&self, batch: &Batch, from: usize, to: usize) -> Vec<u32> {
        let mut rows = Vec::with_capacity((to - from) * batch.len());
        for block in from..to {
            for (&transition, &steps) in batch.indices().iter().zip(batch.steps_k()) {
                let row = transition + self.0.locate(transition).episode;
                rows.push((row + [0, 1, steps as usize][block]) as u32);
            }
        }
        rows
    }

    /// The rows of the actions taken.
    pub(crate) fn actions(batch: &Batch) -> Vec<u32> {
        batch.indices().iter().map(|&transition| transition as u32).collect()
    }

    /// The rows of the next actions; the last action of an episode is repeated.
    pub(crate) fn next_actions(&self, batch: &Batch) -> Vec<u32> {
        let next = |&i: &usize| (i + usize::from(self.0.locate(i).left > 1)) as u32;
        batch.indices().iter().map(next).collect()
    }

    /// The rows of action chunks; past the end of an episode, its last action is repeated.
    pub(crate) fn chunks(&self, batch: &Batch) -> Vec<u32> {
        let chunk = |&i: &usize| {
            let left = self.0.locate(i).left;
            (0..batch.chunk()).map(move |offset| (i + offset.min(left - 1)) as u32)
        };
        batch.indices().iter().flat_map(chunk).collect()
    }
}
