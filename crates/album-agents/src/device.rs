//! Updates on a device: losses are recorded as on the native tape, and computed where the networks are.

use crate::agent::NetworkState;
use crate::networks::Networks;
use album_nn::{Pool, Tape};
use album_xla::{Device, Report, Session, Step, XlaError};
use std::cell::RefCell;

/// The networks of a learner on a device.
pub(crate) struct OnDevice {
    session: Session,
    /// Records what to compute.
    pub(crate) tape: Tape,
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
    pub(crate) fn new(device: &Device, nets: &Networks, pool: &Pool) -> Self {
        let session = Session::new(device, nets.on_device());
        let changing = session.nets().iter().filter(|net| net.role != album_xla::Role::Fixed);
        let tape = Tape::that_defers(pool, changing.map(|net| net.id).collect());
        OnDevice { session, tape, place: Place::Host, failure: RefCell::new(None) }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
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
    pub(crate) fn run(&mut self, nets: &mut Networks, step: Step, factor: f64) -> Option<Report> {
        let report = self.try_run(nets, step, factor);
        self.note(report)
    }

    fn try_run(&mut self, nets: &mut Networks, step: Step, factor: f64) -> Result<Report, XlaError> {
        if self.place == Place::Host {
            let states = nets.state();
            let tensors = states.iter().flat_map(NetworkState::tensors);
            self.session.load(tensors.map(|tensor| &tensor.data[..]))?;
        }
        let rates = nets.advance(factor);
        self.place = Place::Device;
        self.session.run(step, &rates)
    }

    /// The state of all networks on the device; `None` if the host's is current, or the device has failed.
    pub(crate) fn newer(&self, nets: &Networks) -> Option<Vec<NetworkState>> {
        if self.place != Place::Device {
            return None;
        }
        let mut numbers = self.note(self.session.read())?.into_iter();
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
