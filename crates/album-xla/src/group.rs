//! Seeds of one agent that share a device. Each trains as if it were alone, but updates that are requested at
//! the same time run as one program.
//!
//! Every seed has a [`Seat`]. An update waits until every occupied seat has requested one; then those at the
//! lowest step that request the same computation are updated together. Seeds that were stopped at different
//! steps thus catch up with each other, a seed that ends early leaves, and a single run is a group of one.

use crate::XlaError;
use crate::pjrt::Device;
use crate::session::{ProgramSize, Session, Tensors, UpdateMetrics};
use crate::step::{Ask, Net, Step};
use album_base::{machine, number};
use album_nn::StepRates;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A device shared by a fixed number of seeds of an agent.
pub struct Group {
    device: Device,
    seats: usize,
    shared: Mutex<Shared>,
    changed: Condvar,
    /// Called after every update, whichever seeds it is for.
    each: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Shared {
    session: Option<Session>,
    seats: Vec<Place>,
    /// The seats whose tensors are on the device, in order.
    loaded: Vec<usize>,
    /// The host's copy of their tensors, if one was made since the last update.
    copies: Option<Vec<Tensors>>,
    /// Tables that have not been copied to the device yet, by index.
    tables: Vec<Rows>,
}

/// The rows that all seats contribute to one table.
#[derive(Default)]
struct Rows {
    width: usize,
    data: Vec<f32>,
    /// The key of each contribution and its first row.
    parts: Vec<(String, usize)>,
}

/// What the group knows about a seat.
#[derive(Default)]
struct Place {
    /// Its tensors, if they are not on the device or are newer than the device's.
    here: Option<Tensors>,
    /// The update it waits for, and its step.
    asks: Option<(u64, Ask)>,
    answer: Option<Result<UpdateMetrics, XlaError>>,
    left: bool,
}

/// A table on the device that updates gather rows from.
#[derive(Clone, Debug)]
pub struct Table {
    /// Identifies the content: seats that lend tables with the same key share one copy.
    pub key: String,
    /// The number of columns.
    pub width: usize,
    /// The entries, row by row.
    pub rows: Vec<f32>,
}

/// One seed's place in a [`Group`]; dropping it leaves the group.
#[derive(Debug)]
pub struct Seat {
    group: Arc<Group>,
    at: usize,
    nets: Vec<Net>,
    /// Its first row in each table.
    first_rows: Vec<u32>,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group")
            .field("device", &self.device)
            .field("seats", &self.seats)
            .finish_non_exhaustive()
    }
}

impl Group {
    /// A group of `seats` seeds. No update runs before all seats are taken.
    pub fn new(device: &Device, seats: usize) -> Arc<Self> {
        Self::with(device, seats, || {})
    }

    /// Like [`Group::new`]; `each` is called after every update, before the seeds go on.
    pub fn with(device: &Device, seats: usize, each: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Group {
            device: device.clone(),
            seats,
            shared: Mutex::default(),
            changed: Condvar::new(),
            each: Box::new(each),
        })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat for a seed with these networks.
    pub fn sit(self: &Arc<Self>, nets: Vec<Net>) -> Result<Seat, XlaError> {
        let mut shared = self.shared();
        let session = shared.session.get_or_insert_with(|| Session::new(&self.device, nets.clone()));
        let known = session.nets();
        if known.len() != nets.len() || known.iter().zip(&nets).any(|(a, b)| !a.is_like(b)) {
            let what = "its networks are others than those of the runs that it is to be trained with";
            return Err(XlaError::Unsupported(what.into()));
        }
        if shared.seats.len() == self.seats {
            return Err(XlaError::Unsupported(format!("all {} places are taken", self.seats)));
        }
        shared.seats.push(Place::default());
        Ok(Seat { group: self.clone(), at: shared.seats.len() - 1, nets, first_rows: Vec::new() })
    }

    /// Runs the next update if every occupied seat is waiting.
    fn advance(&self, shared: &mut Shared) {
        let waits = |place: &Place| place.left || place.asks.is_some();
        if shared.seats.len() < self.seats || !shared.seats.iter().all(waits) {
            return;
        }
        let asks = shared.seats.iter().filter_map(|place| place.asks.as_ref());
        let Some((lowest, first)) = asks.min_by_key(|ask| ask.0) else { return };
        let is_due = |(step, ask): &(u64, Ask)| step == lowest && ask.is_like(first);
        let places = shared.seats.iter().enumerate();
        let due: Vec<usize> =
            places.filter(|(_, place)| place.asks.as_ref().is_some_and(is_due)).map(|(at, _)| at).collect();
        let asks: Vec<Ask> =
            due.iter().filter_map(|&at| shared.seats[at].asks.take()).map(|(_, ask)| ask).collect();
        match self.update(shared, &due, &asks) {
            Ok(reports) => {
                for (&at, report) in due.iter().zip(reports) {
                    shared.seats[at].answer = Some(Ok(report));
                }
            }
            Err(error) => due.iter().for_each(|&at| shared.seats[at].answer = Some(Err(error.clone()))),
        }
        (self.each)();
        self.changed.notify_all();
    }

    fn update(
        &self,
        shared: &mut Shared,
        due: &[usize],
        asks: &[Ask],
    ) -> Result<Vec<UpdateMetrics>, XlaError> {
        if shared.loaded != due || due.iter().any(|&at| shared.seats[at].here.is_some()) {
            shared.settle()?;
            let numbers: Vec<Tensors> = due.iter().filter_map(|&at| shared.seats[at].here.take()).collect();
            shared.session()?.load(&numbers.iter().collect::<Vec<_>>())?;
            shared.loaded = due.to_vec();
        }
        for Rows { width, data, .. } in std::mem::take(&mut shared.tables) {
            shared.session()?.lend(&data, width)?;
        }
        shared.copies = None;
        shared.session()?.run(&asks.iter().collect::<Vec<_>>())
    }
}

impl Shared {
    fn session(&mut self) -> Result<&mut Session, XlaError> {
        self.session.as_mut().ok_or_else(|| XlaError::Unsupported("nobody has taken a seat".into()))
    }

    /// Copies all tensors to the host. A seat that has brought newer ones keeps those.
    fn settle(&mut self) -> Result<(), XlaError> {
        if self.loaded.is_empty() {
            return Ok(());
        }
        let numbers = match self.copies.take() {
            Some(copies) => copies,
            None => self.session()?.read()?,
        };
        for (at, numbers) in std::mem::take(&mut self.loaded).into_iter().zip(numbers) {
            self.seats[at].here.get_or_insert(numbers);
        }
        Ok(())
    }

    /// The tensors of a seat.
    fn numbers(&mut self, at: usize) -> Result<Tensors, XlaError> {
        if let Some(here) = &self.seats[at].here {
            return Ok(here.clone());
        }
        let place = self.loaded.iter().position(|&loaded| loaded == at);
        if self.copies.is_none() {
            self.copies = Some(self.session()?.read()?);
        }
        let copy = place.and_then(|place| self.copies.as_ref()?.get(place).cloned());
        copy.ok_or_else(|| XlaError::Unsupported("the networks on the device are lost".into()))
    }
}

impl Seat {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.group.device
    }

    /// The networks.
    pub fn nets(&self) -> &[Net] {
        &self.nets
    }

    /// The programs compiled so far, for all seats.
    pub fn programs(&self) -> Vec<ProgramSize> {
        self.group.shared().session.iter().flat_map(Session::programs).collect()
    }

    /// Lends tables, which are copied to the device before the first update. Updates can then refer to their
    /// rows ([`album_nn::Tape::constant_of_table`]), by the row's index in this seat's tables.
    pub fn lend(&mut self, tables: Vec<Table>) -> Result<(), XlaError> {
        let mut shared = self.group.shared();
        shared.tables.resize_with(tables.len(), Rows::default);
        for (all, Table { key, width, rows }) in shared.tables.iter_mut().zip(tables) {
            let known = all.parts.iter().find(|part| part.0 == key).map(|part| part.1);
            let first = known.unwrap_or_else(|| {
                let first = all.data.len() / width.max(1);
                all.width = width;
                all.data.extend(rows);
                all.parts.push((key, first));
                first
            });
            self.first_rows.push(first as u32);
        }
        let bytes = shared.tables.iter().map(|all| 4 * all.data.len() as u64).sum();
        check_room(&self.group.device, bytes)
    }

    /// Runs one update, together with those of the other seats. `fresh` holds the tensors of all networks
    /// (network by network: weights, first moments, second moments) if they are not those that the last
    /// update left. `rates` are those of the trained networks, in order.
    pub fn run(
        &self,
        number: u64,
        step: Step,
        rates: &[StepRates],
        fresh: Option<Vec<Vec<f32>>>,
    ) -> Result<UpdateMetrics, XlaError> {
        let ask = Ask::new(step, rates, &self.nets, &self.first_rows)?;
        let mut shared = self.group.shared();
        let place = &mut shared.seats[self.at];
        place.here = fresh.or(place.here.take());
        place.asks = Some((number, ask));
        self.group.advance(&mut shared);
        loop {
            if let Some(answer) = shared.seats[self.at].answer.take() {
                return answer;
            }
            shared = self.group.changed.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The tensors of all networks after the last update, in the order of [`Seat::run`].
    pub fn read(&self) -> Result<Vec<Vec<f32>>, XlaError> {
        self.group.shared().numbers(self.at)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut shared = self.group.shared();
        shared.seats[self.at] = Place { left: true, ..Place::default() };
        self.group.advance(&mut shared);
    }
}

/// Refuses tables that do not fit, if the free memory is known.
pub(crate) fn check_room(device: &Device, bytes: u64) -> Result<(), XlaError> {
    let on_device = device.memory().and_then(|memory| memory.free());
    // The memory of a CPU device is the machine's.
    let free = on_device.or_else(|| device.name().eq_ignore_ascii_case("cpu").then(machine::available)?);
    match free {
        Some(free) if bytes > free => {
            Err(XlaError::Room { needed: number::bytes(bytes), free: number::bytes(free) })
        }
        _ => Ok(()),
    }
}
