//! The part of `pjrt_c_api.h` (version 0.81) that we use, field by field. Every struct begins with its size
//! and a list of extensions; a plugin accepts structs larger than the ones it knows and refuses smaller ones.
//! Ours are padded with zeros for the fields that later versions add (0.97 and 0.104 do), so newer plugins
//! accept them too.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

/// The version of the C API that this file follows.
pub(crate) const VERSION: (i32, i32) = (0, 81);

/// Every function of the API takes one struct and returns an error or null; two of the functions on errors
/// return nothing.
pub(crate) type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// What `GetPjrtApi` returns: this header, followed by a table of functions in a fixed order.
#[repr(C)]
pub(crate) struct Api {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut c_void,
    pub(crate) version: Version,
}

#[repr(C)]
pub(crate) struct Version {
    pub(crate) struct_size: usize,
    pub(crate) extension_start: *mut c_void,
    pub(crate) major: c_int,
    pub(crate) minor: c_int,
}

/// Index of each function in the table that follows [`Api`].
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Call {
    ErrorDestroy = 0,
    ErrorMessage = 1,
    ErrorGetCode = 2,
    PluginInitialize = 3,
    EventDestroy = 5,
    EventAwait = 8,
    ClientCreate = 10,
    ClientDestroy = 11,
    ClientPlatformName = 12,
    ClientPlatformVersion = 14,
    ClientAddressableDevices = 16,
    ClientCompile = 20,
    ClientBufferFromHostBuffer = 22,
    DeviceDescriptionId = 23,
    DeviceDescriptionKind = 26,
    DeviceGetDescription = 29,
    DeviceMemoryStats = 34,
    ExecutableDestroy = 40,
    ExecutableNumOutputs = 44,
    LoadedExecutableDestroy = 50,
    LoadedExecutableGetExecutable = 51,
    LoadedExecutableExecute = 55,
    BufferDestroy = 58,
    BufferToHostBuffer = 70,
    ExecutableGetCompiledMemoryStats = 96,
}

/// Index of the last function that every plugin must have.
pub(crate) const LAST_NEEDED: usize = Call::BufferToHostBuffer as usize;

/// A number that a plugin may or may not report.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Known {
    pub(crate) number: i64,
    pub(crate) is_set: bool,
}

/// How many pointer-sized fields later versions may add.
pub(crate) const LATER: usize = 8;

/// An argument struct, zeroed but for its size.
pub(crate) trait Arguments: Sized {
    fn empty() -> Self;
}

macro_rules! arguments {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty = $zero:expr,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub(crate) struct $name {
            pub(crate) struct_size: usize,
            pub(crate) extension_start: *mut c_void,
            $(pub(crate) $field: $type,)*
            /// Zeros, in place of the fields of later versions.
            pub(crate) later: [usize; LATER],
        }

        impl Arguments for $name {
            fn empty() -> Self {
                $name { struct_size: size_of::<$name>(), extension_start: ptr::null_mut(), $($field: $zero,)* later: [0; LATER] }
            }
        }
    )*};
}

arguments! {
    /// For calls that destroy an object or wait for it.
    One { object: *mut c_void = ptr::null_mut(), }
    /// For calls that take an object and return a string.
    Text {
        object: *mut c_void = ptr::null_mut(),
        text: *const c_char = ptr::null(),
        size: usize = 0,
    }
    /// For calls that take an object and return another one, or a pointer-sized number.
    Other {
        object: *mut c_void = ptr::null_mut(),
        other: *mut c_void = ptr::null_mut(),
    }
    /// For calls that take an object and return an `int`.
    Number {
        object: *mut c_void = ptr::null_mut(),
        number: c_int = 0,
    }
    Initialize {}
    ClientCreate {
        options: *const c_void = ptr::null(),
        num_options: usize = 0,
        get_callback: *const c_void = ptr::null(),
        get_argument: *mut c_void = ptr::null_mut(),
        put_callback: *const c_void = ptr::null(),
        put_argument: *mut c_void = ptr::null_mut(),
        client: *mut c_void = ptr::null_mut(),
        try_get_callback: *const c_void = ptr::null(),
        try_get_argument: *mut c_void = ptr::null_mut(),
    }
    Devices {
        client: *mut c_void = ptr::null_mut(),
        devices: *const *mut c_void = ptr::null(),
        count: usize = 0,
    }
    Program {
        code: *mut c_char = ptr::null_mut(),
        code_size: usize = 0,
        format: *const c_char = ptr::null(),
        format_size: usize = 0,
    }
    Compile {
        client: *mut c_void = ptr::null_mut(),
        program: *const Program = ptr::null(),
        options: *const c_char = ptr::null(),
        options_size: usize = 0,
        executable: *mut c_void = ptr::null_mut(),
    }
    BufferFromHost {
        client: *mut c_void = ptr::null_mut(),
        data: *const c_void = ptr::null(),
        kind: c_int = 0,
        dims: *const i64 = ptr::null(),
        num_dims: usize = 0,
        strides: *const i64 = ptr::null(),
        num_strides: usize = 0,
        // 0 (`kImmutableOnlyDuringCall`): the data may change as soon as the call returns.
        semantics: c_int = 0,
        device: *mut c_void = ptr::null_mut(),
        memory: *mut c_void = ptr::null_mut(),
        layout: *mut c_void = ptr::null_mut(),
        done: *mut c_void = ptr::null_mut(),
        buffer: *mut c_void = ptr::null_mut(),
    }
    BufferToHost {
        source: *mut c_void = ptr::null_mut(),
        layout: *mut c_void = ptr::null_mut(),
        to: *mut c_void = ptr::null_mut(),
        size: usize = 0,
        event: *mut c_void = ptr::null_mut(),
    }
    ExecuteOptions {
        send_callbacks: *mut c_void = ptr::null_mut(),
        receive_callbacks: *mut c_void = ptr::null_mut(),
        num_sends: usize = 0,
        num_receives: usize = 0,
        launch_id: c_int = 0,
        not_donated: *const i64 = ptr::null(),
        num_not_donated: usize = 0,
        context: *mut c_void = ptr::null_mut(),
        call_location: *const c_char = ptr::null(),
        num_tasks: usize = 0,
        task_ids: *mut c_int = ptr::null_mut(),
        incarnation_ids: *mut i64 = ptr::null_mut(),
    }
    Execute {
        executable: *mut c_void = ptr::null_mut(),
        options: *mut ExecuteOptions = ptr::null_mut(),
        arguments: *const *const *mut c_void = ptr::null(),
        num_devices: usize = 0,
        num_arguments: usize = 0,
        outputs: *const *mut *mut c_void = ptr::null(),
        complete: *mut *mut c_void = ptr::null_mut(),
        device: *mut c_void = ptr::null_mut(),
    }
    MemoryStats {
        device: *mut c_void = ptr::null_mut(),
        bytes_in_use: i64 = 0,
        // Peak, number of allocations, largest allocation, limit, and so on.
        more: [Known; 10] = [Known { number: 0, is_set: false }; 10],
    }
    CompiledMemory {
        executable: *mut c_void = ptr::null_mut(),
        code: i64 = 0,
        arguments: i64 = 0,
        outputs: i64 = 0,
        aliases: i64 = 0,
        temporary: i64 = 0,
        on_host: [i64; 5] = [0; 5],
        peak: i64 = 0,
    }
}
