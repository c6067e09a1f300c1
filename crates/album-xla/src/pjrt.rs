//! Safe bindings to the few calls of the PJRT C API that a training step needs.
#![allow(unsafe_code)]

use crate::abi::{self, Api, Arguments, Call, Function, One, Other, Text};
use crate::error::XlaError;
use libloading::Library;
use std::ffi::{c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

type Object = *mut c_void;

/// A loaded plugin. It is never unloaded, because its runtime keeps threads of its own.
struct Plugin {
    api: *const Api,
}

// SAFETY: the table of functions is constant, and the interface may be called from any thread.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

impl Plugin {
    fn load(path: &Path) -> Result<Self, XlaError> {
        let not = |reason: &str| XlaError::NotAPlugin { path: path.to_owned(), reason: reason.to_owned() };
        // SAFETY: loading a library runs its initialisers. Whoever names a plugin trusts it.
        let library = unsafe { Library::new(path) }
            .map_err(|e| XlaError::Load { path: path.to_owned(), reason: e.to_string() })?;
        let library = Box::leak(Box::new(library));
        // SAFETY: a library that exports this name does so with this type.
        let get = unsafe { library.get::<unsafe extern "C" fn() -> *const Api>(b"GetPjrtApi\0") }
            .map_err(|_| not("it has no function GetPjrtApi"))?;
        // SAFETY: takes nothing, returns a table that lives as long as the library, or null.
        let api = unsafe { get() };
        if api.is_null() {
            return Err(not("GetPjrtApi returns nothing"));
        }
        let plugin = Plugin { api };
        // SAFETY: not null; the header is the same in all versions.
        let (size, version) = unsafe { ((*api).struct_size, &(*api).version) };
        let found = (version.major, version.minor);
        if found.0 != abi::VERSION.0 || size < Plugin::offset(abi::LAST_NEEDED + 1) {
            return Err(XlaError::Version { path: path.to_owned(), found, expected: abi::VERSION });
        }
        plugin.call(Call::PluginInitialize, "starting", &mut abi::Initialize::empty())?;
        Ok(plugin)
    }

    /// The byte offset of function `i` of the table.
    fn offset(i: usize) -> usize {
        size_of::<Api>() + i * size_of::<Function>()
    }

    fn function(&self, call: Call) -> Option<Function> {
        let offset = Plugin::offset(call as usize);
        // SAFETY: the table is as long as it says, and its entries are functions or null.
        unsafe {
            if (*self.api).struct_size < offset + size_of::<Function>() {
                return None;
            }
            self.api.byte_add(offset).cast::<Option<Function>>().read()
        }
    }

    /// Calls a function of the API. `arguments` must be the struct that the header declares for it.
    fn call<A: Arguments>(&self, call: Call, doing: &'static str, arguments: &mut A) -> Result<(), XlaError> {
        let Some(function) = self.function(call) else {
            return Err(XlaError::Plugin { doing, code: 12, message: format!("it has no {call:?}") });
        };
        // SAFETY: the struct begins with its size and has the fields that this call reads and writes; what its pointers
        // refer to outlives the call (see each caller).
        let error = unsafe { function(ptr::from_mut(arguments).cast()) };
        if error.is_null() { Ok(()) } else { Err(self.failure(doing, error)) }
    }

    /// Reads and frees an error.
    fn failure(&self, doing: &'static str, error: Object) -> XlaError {
        let mut text = Text { object: error, ..Text::empty() };
        let mut number = abi::Number { object: error, ..abi::Number::empty() };
        let mut gone = One { object: error, ..One::empty() };
        let mut message = String::new();
        // SAFETY: the error is alive until it is destroyed, and its text as long as the error.
        unsafe {
            if let Some(read) = self.function(Call::ErrorMessage) {
                read(ptr::from_mut(&mut text).cast());
                message = string(text.text, text.size);
            }
            if let Some(code) = self.function(Call::ErrorGetCode) {
                code(ptr::from_mut(&mut number).cast());
            }
            if let Some(destroy) = self.function(Call::ErrorDestroy) {
                destroy(ptr::from_mut(&mut gone).cast());
            }
        }
        match number.number {
            8 => XlaError::OutOfMemory { doing, message },
            code => XlaError::Plugin { doing, code, message },
        }
    }

    fn text(&self, call: Call, object: Object) -> Result<String, XlaError> {
        let mut text = Text { object, ..Text::empty() };
        self.call(call, "describing itself", &mut text)?;
        // SAFETY: the plugin says that this many bytes are there; they live as long as the object.
        Ok(unsafe { string(text.text, text.size) })
    }

    fn destroy(&self, call: Call, object: Object) {
        if !object.is_null() {
            // There is nobody to report a failed cleanup to.
            let _ = self.call(call, "cleaning up", &mut One { object, ..One::empty() });
        }
    }

    /// Waits for an event and frees it.
    fn wait(&self, event: Object, doing: &'static str) -> Result<(), XlaError> {
        if event.is_null() {
            return Ok(());
        }
        let waited = self.call(Call::EventAwait, doing, &mut One { object: event, ..One::empty() });
        self.destroy(Call::EventDestroy, event);
        waited
    }
}

/// Copies a string of the plugin.
///
/// # Safety
/// `size` bytes can be read at `text`.
unsafe fn string(text: *const c_char, size: usize) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: promised by the caller.
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(text.cast::<u8>(), size) }).into_owned()
}

/// A PJRT client: the runtime that owns the devices.
struct Client {
    plugin: Plugin,
    raw: Object,
}

// SAFETY: clients, devices, executables and buffers of the interface may be used from any thread.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl Drop for Client {
    fn drop(&mut self) {
        self.plugin.destroy(Call::ClientDestroy, self.raw);
    }
}

/// A device of a plugin.
#[derive(Clone)]
pub struct Device {
    client: Arc<Client>,
    raw: Object,
    /// The plugin's id of the device.
    id: i32,
    /// The platform and the kind of device, for example `cuda NVIDIA H100`.
    name: String,
}

// SAFETY: as for the client, which it keeps alive.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

/// An element type of tensors.
pub trait Element: Copy {
    /// Its `PJRT_Buffer_Type`.
    const KIND: i32;
}

impl Element for f32 {
    const KIND: i32 = 11;
}

impl Element for i32 {
    const KIND: i32 = 4;
}

/// Memory statistics of a device in bytes, as far as the plugin reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Allocated now.
    pub in_use: u64,
    /// The most that was allocated at once.
    pub peak: Option<u64>,
    /// The most that can be allocated.
    pub limit: Option<u64>,
}

impl Memory {
    /// The memory that is left, if the limit is known.
    pub fn free(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.in_use))
    }
}

impl Device {
    /// Loads the plugin in this file and lists its devices.
    pub fn all(plugin: &Path) -> Result<Vec<Device>, XlaError> {
        let plugin = Plugin::load(plugin)?;
        let mut create = abi::ClientCreate::empty();
        plugin.call(Call::ClientCreate, "opening its devices", &mut create)?;
        let client = Arc::new(Client { plugin, raw: create.client });
        let plugin = &client.plugin;
        let platform = plugin.text(Call::ClientPlatformName, client.raw)?;
        let mut found = abi::Devices { client: client.raw, ..abi::Devices::empty() };
        plugin.call(Call::ClientAddressableDevices, "listing its devices", &mut found)?;
        let mut devices = Vec::with_capacity(found.count);
        for i in 0..found.count {
            // SAFETY: the list is as long as the plugin says and lives as long as the client.
            let raw = unsafe { *found.devices.add(i) };
            let mut other = Other { object: raw, ..Other::empty() };
            plugin.call(Call::DeviceGetDescription, "describing a device", &mut other)?;
            let kind = plugin.text(Call::DeviceDescriptionKind, other.other)?;
            let mut id = abi::Number { object: other.other, ..abi::Number::empty() };
            plugin.call(Call::DeviceDescriptionId, "describing a device", &mut id)?;
            let name = if kind.eq_ignore_ascii_case(&platform) { kind } else { format!("{platform} {kind}") };
            devices.push(Device { client: client.clone(), raw, id: id.number, name });
        }
        Ok(devices)
    }

    /// Platform and kind of device, for example `cpu` or `cuda NVIDIA H100`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The runtime's version, as the plugin describes it.
    pub fn version(&self) -> Result<String, XlaError> {
        self.client.plugin.text(Call::ClientPlatformVersion, self.client.raw)
    }

    /// Memory statistics; `None` if the plugin does not report them.
    pub fn memory(&self) -> Option<Memory> {
        let mut stats = abi::MemoryStats { device: self.raw, ..abi::MemoryStats::empty() };
        self.client.plugin.call(Call::DeviceMemoryStats, "counting memory", &mut stats).ok()?;
        let [peak, _, _, limit, ..] = stats.more.map(|x| x.is_set.then_some(x.number.max(0) as u64));
        Some(Memory { in_use: stats.bytes_in_use.max(0) as u64, peak, limit })
    }

    /// Copies `data` to the device as a tensor of these dimensions.
    ///
    /// # Panics
    /// If the length of `data` is not the product of the dimensions.
    pub fn upload<T: Element>(&self, data: &[T], dims: &[usize]) -> Result<Buffer, XlaError> {
        assert_eq!(data.len(), dims.iter().product::<usize>(), "{} numbers as {dims:?}", data.len());
        let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
        let mut arguments = abi::BufferFromHost {
            client: self.client.raw,
            data: data.as_ptr().cast(),
            kind: T::KIND,
            dims: dims.as_ptr(),
            num_dims: dims.len(),
            device: self.raw,
            ..abi::BufferFromHost::empty()
        };
        let doing = "copying to the device";
        self.client.plugin.call(Call::ClientBufferFromHostBuffer, doing, &mut arguments)?;
        let buffer = Buffer { client: self.client.clone(), raw: arguments.buffer };
        // With `kImmutableOnlyDuringCall`, the plugin has read the data before it returned: nothing to wait for.
        self.client.plugin.destroy(Call::EventDestroy, arguments.done);
        Ok(buffer)
    }

    /// Compiles a StableHLO program for this device.
    pub fn compile(&self, program: &str) -> Result<Executable, XlaError> {
        const FORMAT: &str = "mlir";
        let options = compile_options(self.id);
        let text = abi::Program {
            // The header lacks a `const`; plugins only read the program.
            code: program.as_ptr().cast_mut().cast(),
            code_size: program.len(),
            format: FORMAT.as_ptr().cast(),
            format_size: FORMAT.len(),
            ..abi::Program::empty()
        };
        let mut arguments = abi::Compile {
            client: self.client.raw,
            program: &raw const text,
            options: options.as_ptr().cast(),
            options_size: options.len(),
            ..abi::Compile::empty()
        };
        let plugin = &self.client.plugin;
        plugin.call(Call::ClientCompile, "compiling a step", &mut arguments)?;
        let mut executable =
            Executable { client: self.client.clone(), raw: arguments.executable, outputs: 0, peak: None };
        let mut inner = Other { object: executable.raw, ..Other::empty() };
        plugin.call(Call::LoadedExecutableGetExecutable, "looking at a program", &mut inner)?;
        let mut outputs = Other { object: inner.other, ..Other::empty() };
        let counted = plugin.call(Call::ExecutableNumOutputs, "looking at a program", &mut outputs);
        let mut memory = abi::CompiledMemory { executable: inner.other, ..abi::CompiledMemory::empty() };
        let measured =
            plugin.call(Call::ExecutableGetCompiledMemoryStats, "looking at a program", &mut memory);
        plugin.destroy(Call::ExecutableDestroy, inner.other);
        counted?;
        executable.outputs = outputs.other.addr();
        if measured.is_ok() {
            let all = memory.arguments + memory.outputs - memory.aliases + memory.temporary;
            executable.peak = Some(memory.peak.max(all).max(0) as u64);
        }
        Ok(executable)
    }
}

/// A serialized `CompileOptionsProto`: one replica and one partition, on this device.
fn compile_options(device: i32) -> Vec<u8> {
    let id = varint(device.max(0) as u64);
    let devices = [&[0x0a, id.len() as u8][..], &id].concat(); // replica_device_ids
    let assignment = [&[0x08, 1, 0x10, 1, 0x1a, devices.len() as u8][..], &devices].concat();
    // num_replicas, num_partitions, device_assignment
    let build = [&[0x20, 1, 0x28, 1, 0x4a, assignment.len() as u8][..], &assignment].concat();
    [&[0x1a, build.len() as u8][..], &build].concat()
}

fn varint(mut x: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while x >= 0x80 {
        bytes.push(x as u8 | 0x80);
        x >>= 7;
    }
    bytes.push(x as u8);
    bytes
}

/// A compiled program.
pub struct Executable {
    client: Arc<Client>,
    raw: Object,
    outputs: usize,
    peak: Option<u64>,
}

// SAFETY: as for the client, which it keeps alive.
unsafe impl Send for Executable {}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executable")
            .field("outputs", &self.outputs)
            .field("peak", &self.peak)
            .finish_non_exhaustive()
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        self.client.plugin.destroy(Call::LoadedExecutableDestroy, self.raw);
    }
}

impl Executable {
    /// Peak memory of a run in bytes, arguments included, if the compiler reports it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.peak
    }

    /// Runs the program. Donated arguments (those aliased to a result) must not be used afterwards.
    pub fn run(&self, arguments: &[&Buffer]) -> Result<Vec<Buffer>, XlaError> {
        let inputs: Vec<Object> = arguments.iter().map(|buffer| buffer.raw).collect();
        let mut outputs: Vec<Object> = vec![ptr::null_mut(); self.outputs];
        // PJRT wants one list per device; there is one device.
        let (inputs, to) = (inputs.as_ptr(), outputs.as_mut_ptr());
        let mut options = abi::ExecuteOptions::empty();
        let mut execute = abi::Execute {
            executable: self.raw,
            options: &raw mut options,
            arguments: &raw const inputs,
            num_devices: 1,
            num_arguments: arguments.len(),
            outputs: &raw const to,
            ..abi::Execute::empty()
        };
        self.client.plugin.call(Call::LoadedExecutableExecute, "running a step", &mut execute)?;
        Ok(outputs.into_iter().map(|raw| Buffer { client: self.client.clone(), raw }).collect())
    }
}

/// A tensor on a device.
pub struct Buffer {
    client: Arc<Client>,
    raw: Object,
}

// SAFETY: as for the client, which it keeps alive.
unsafe impl Send for Buffer {}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").finish_non_exhaustive()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.client.plugin.destroy(Call::BufferDestroy, self.raw);
    }
}

impl Buffer {
    /// Waits for the values and copies them from the device into `to`, which must be as long as the tensor.
    pub fn download(&self, to: &mut [f32]) -> Result<(), XlaError> {
        let doing = "copying from the device";
        let mut arguments = abi::BufferToHost {
            source: self.raw,
            to: to.as_mut_ptr().cast(),
            size: size_of_val(to),
            ..abi::BufferToHost::empty()
        };
        let plugin = &self.client.plugin;
        plugin.call(Call::BufferToHostBuffer, doing, &mut arguments)?;
        // The plugin may write to `to` until the event is ready.
        plugin.wait(arguments.event, doing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compile_options_are_those_of_the_header() {
        // executable_build_options (3): num_replicas (4) 1, num_partitions (5) 1, device_assignment (9)
        let expected = [0x1a, 15, 0x20, 1, 0x28, 1, 0x4a, 9, 0x08, 1, 0x10, 1, 0x1a, 3, 0x0a, 1, 0x02];
        assert_eq!(compile_options(2), expected);
        assert_eq!(varint(300), [0xac, 2]);
    }

    #[test]
    fn structs_have_the_sizes_of_the_header() {
        let known = |size: usize| size - abi::LATER * size_of::<usize>();
        assert_eq!(known(size_of::<abi::BufferFromHost>()), 120);
        assert_eq!(known(size_of::<abi::ExecuteOptions>()), 112);
        assert_eq!(known(size_of::<abi::Execute>()), 80);
        assert_eq!(known(size_of::<abi::ClientCreate>()), 88);
        assert_eq!(known(size_of::<abi::MemoryStats>()), 192);
        assert_eq!(known(size_of::<abi::CompiledMemory>()), 112);
        assert_eq!(size_of::<Api>(), 40);
    }
}
