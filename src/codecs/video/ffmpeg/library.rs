//! FFmpeg's libraries, opened at run time, and the functions that we call.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::abi::{self, Abi, VERSIONS};

/// A timestamp that is missing.
pub const NO_PTS: i64 = i64::MIN;
/// The end of a file or of a decoder's output: `FFERRTAG('E', 'O', 'F', ' ')`.
pub const END: c_int = -0x2046_4f45;
/// A decoder that needs more packets before it has a frame.
pub const AGAIN: c_int = -libc::EAGAIN;

pub type ReadFn = unsafe extern "C" fn(*mut c_void, *mut u8, c_int) -> c_int;
pub type SeekFn = unsafe extern "C" fn(*mut c_void, i64, c_int) -> i64;

macro_rules! functions {
    ($($library:ident { $($name:ident: fn($($arg:ty),*) $(-> $result:ty)?;)* })*) => {
        /// The functions of FFmpeg, by their names.
        pub struct Library {
            pub abi: Abi,
            /// The major version of libavcodec.
            pub major: u32,
            /// Whether frames of sound say how many channels they have.
            pub has_channel_layouts: bool,
            /// Only in older versions, where `codecpar` has no side data.
            pub av_stream_get_side_data:
                Option<unsafe extern "C" fn(*const c_void, c_int, *mut usize) -> *mut u8>,
            $($(pub $name: unsafe extern "C" fn($($arg),*) $(-> $result)?,)*)*
        }

        impl Library {
            fn bind(
                handles: &Handles,
                abi: Abi,
                major: u32,
                has_channel_layouts: bool,
            ) -> Result<Library, Refusal> {
                Ok(Library {
                    abi,
                    major,
                    has_channel_layouts,
                    av_stream_get_side_data: symbol(handles.avformat, "av_stream_get_side_data")
                        .ok()
                        // SAFETY: the signature of versions that have the function.
                        .map(|found| unsafe { std::mem::transmute(found) }),
                    $($($name: {
                        let found = symbol(handles.$library, stringify!($name))?;
                        // SAFETY: the function has this signature in all versions of `VERSIONS`.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($arg),*) $(-> $result)?,
                            >(found)
                        }
                    },)*)*
                })
            }
        }
    };
}

functions! {
    avformat {
        avformat_alloc_context: fn() -> *mut c_void;
        avformat_open_input:
            fn(*mut *mut c_void, *const c_char, *const c_void, *mut *mut c_void) -> c_int;
        avformat_close_input: fn(*mut *mut c_void);
        avformat_find_stream_info: fn(*mut c_void, *mut *mut c_void) -> c_int;
        av_find_best_stream:
            fn(*mut c_void, c_int, c_int, c_int, *mut *const c_void, c_int) -> c_int;
        av_read_frame: fn(*mut c_void, *mut c_void) -> c_int;
        av_seek_frame: fn(*mut c_void, c_int, i64, c_int) -> c_int;
        avio_alloc_context: fn(
            *mut u8, c_int, c_int, *mut c_void, Option<ReadFn>, Option<ReadFn>, Option<SeekFn>
        ) -> *mut c_void;
        avio_context_free: fn(*mut *mut c_void);
    }
    avcodec {
        avcodec_find_decoder: fn(c_uint) -> *const c_void;
        avcodec_get_name: fn(c_uint) -> *const c_char;
        avcodec_alloc_context3: fn(*const c_void) -> *mut c_void;
        avcodec_free_context: fn(*mut *mut c_void);
        avcodec_parameters_to_context: fn(*mut c_void, *const c_void) -> c_int;
        avcodec_parameters_alloc: fn() -> *mut c_void;
        avcodec_parameters_free: fn(*mut *mut c_void);
        avcodec_open2: fn(*mut c_void, *const c_void, *mut *mut c_void) -> c_int;
        avcodec_send_packet: fn(*mut c_void, *const c_void) -> c_int;
        avcodec_receive_frame: fn(*mut c_void, *mut c_void) -> c_int;
        avcodec_flush_buffers: fn(*mut c_void);
        av_packet_alloc: fn() -> *mut c_void;
        av_packet_unref: fn(*mut c_void);
        av_packet_free: fn(*mut *mut c_void);
    }
    avutil {
        av_frame_alloc: fn() -> *mut c_void;
        av_frame_free: fn(*mut *mut c_void);
        av_malloc: fn(usize) -> *mut c_void;
        av_free: fn(*mut c_void);
        av_dict_set: fn(*mut *mut c_void, *const c_char, *const c_char, c_int) -> c_int;
        av_dict_free: fn(*mut *mut c_void);
        av_opt_set_int: fn(*mut c_void, *const c_char, i64, c_int) -> c_int;
        av_get_pix_fmt_name: fn(c_int) -> *const c_char;
        av_strerror: fn(c_int, *mut c_char, usize) -> c_int;
    }
}

/// Why libraries can't be used, for people.
#[derive(Clone, Debug)]
pub struct Refusal(pub String);

/// Libraries that are open; they are never closed, since their functions are kept.
struct Handles {
    avcodec: *mut c_void,
    avformat: *mut c_void,
    avutil: *mut c_void,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

impl Library {
    /// The libraries in use, if any were found.
    pub fn get() -> Option<&'static Library> {
        LIBRARY.get()
    }

    /// Opens the libraries of a folder, or, without a folder, those that the system finds by name.
    /// Those that were opened first stay in use.
    pub fn open(folder: Option<&Path>) -> Result<&'static Library, Refusal> {
        if let Some(library) = LIBRARY.get() {
            return Ok(library);
        }
        let library = match folder {
            Some(folder) => Library::of_folder(folder)?,
            None => Library::of_system()?,
        };
        library.check()?;
        Ok(LIBRARY.get_or_init(|| library))
    }

    fn of_folder(folder: &Path) -> Result<Library, Refusal> {
        let files = std::fs::read_dir(folder)
            .map_err(|error| Refusal(format!("{}: {error}", folder.display())))?;
        let files: Vec<PathBuf> = files.flatten().map(|entry| entry.path()).collect();
        // Wheels put a hash between the name and the version.
        let find = |name: &str| {
            let fits = |path: &&PathBuf| {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let rest = file.strip_prefix(name);
                let library = file.contains(".so") || file.ends_with(".dylib");
                library && rest.is_some_and(|rest| rest.starts_with(['.', '-']))
            };
            // The shortest name is the one that links point from.
            let found = files.iter().filter(fits).min_by_key(|path| path.as_os_str().len());
            found.ok_or_else(|| Refusal(format!("{} has no {name}", folder.display())))
        };
        // The one that the others depend on is opened first, for systems that don't find it next
        // to them.
        let avutil = open(find("libavutil")?)?;
        let avcodec = open(find("libavcodec")?)?;
        let avformat = open(find("libavformat")?)?;
        Library::of(&Handles { avcodec, avformat, avutil })
    }

    fn of_system() -> Result<Library, Refusal> {
        let mut last = Refusal("the system has no libavcodec of a known version".into());
        for (majors, _) in VERSIONS {
            let names = ["libavcodec", "libavformat", "libavutil"].into_iter().zip(majors);
            let opened: Result<Vec<_>, _> = names
                .map(|(name, major)| {
                    let file = match cfg!(target_os = "macos") {
                        true => format!("{name}.{major}.dylib"),
                        false => format!("{name}.so.{major}"),
                    };
                    open(Path::new(&file))
                })
                .collect();
            if let Ok([avcodec, avformat, avutil]) = opened.as_deref() {
                let handles = Handles { avcodec: *avcodec, avformat: *avformat, avutil: *avutil };
                match Library::of(&handles) {
                    Ok(library) => return Ok(library),
                    Err(refusal) => last = refusal,
                }
            }
        }
        Err(last)
    }

    fn of(handles: &Handles) -> Result<Library, Refusal> {
        let version = |handle, name| {
            let found = symbol(handle, name)?;
            // SAFETY: the functions for versions have had this signature since they exist.
            let version: unsafe extern "C" fn() -> c_uint = unsafe { std::mem::transmute(found) };
            // SAFETY: it takes nothing and returns a constant.
            Ok(unsafe { version() })
        };
        let util = version(handles.avutil, "avutil_version")?;
        let majors = [
            version(handles.avcodec, "avcodec_version")? >> 16,
            version(handles.avformat, "avformat_version")? >> 16,
            util >> 16,
        ];
        let Some((_, abi)) = VERSIONS.iter().find(|(known, _)| *known == majors) else {
            let [codec, format, util] = majors;
            return Err(Refusal(format!(
                "libavcodec {codec}, libavformat {format} and libavutil {util} are not a known \
                 version of FFmpeg (known: 5 to 9)"
            )));
        };
        Library::bind(handles, *abi, majors[0], util >= abi::CHANNEL_LAYOUTS)
    }

    /// Compares the defaults of new structures with what they are known to be, so that a build
    /// with other offsets is refused instead of misread.
    fn check(&self) -> Result<(), Refusal> {
        let is = |at: *const c_void, offset: usize, wanted: i32| {
            // SAFETY: the structures below are larger than the offsets of the fields in them.
            unsafe { read::<i32>(at, offset) == wanted }
        };
        // SAFETY: the structures are allocated here, read within their size, and freed once.
        let fits = unsafe {
            let mut packet = (self.av_packet_alloc)();
            let mut frame = (self.av_frame_alloc)();
            let mut parameters = (self.avcodec_parameters_alloc)();
            let fits = !packet.is_null()
                && !frame.is_null()
                && !parameters.is_null()
                && read::<i64>(packet, abi::PACKET_PTS) == NO_PTS
                && read::<i64>(packet, abi::PACKET_DTS) == NO_PTS
                && read::<i64>(packet, abi::PACKET_POS) == -1
                && read::<i64>(frame, abi::FRAME_PTS) == NO_PTS
                && read::<i64>(frame, self.abi.frame_best_effort_timestamp) == NO_PTS
                && is(frame, abi::FRAME_FORMAT, -1)
                && is(frame, self.abi.frame_colorspace, UNSPECIFIED)
                && is(parameters, abi::CODECPAR_CODEC_TYPE, -1)
                && is(parameters, self.abi.codecpar_format, -1)
                && is(parameters, self.abi.codecpar_color_space, UNSPECIFIED);
            (self.av_packet_free)(&mut packet);
            (self.av_frame_free)(&mut frame);
            (self.avcodec_parameters_free)(&mut parameters);
            fits
        };
        match fits {
            true => Ok(()),
            false => Err(Refusal("this build of FFmpeg has another memory layout".into())),
        }
    }

    /// FFmpeg's own words for an error.
    pub fn error_text(&self, code: c_int) -> String {
        let mut text = [0; 128];
        // SAFETY: the buffer has the given size; the text is terminated.
        unsafe {
            (self.av_strerror)(code, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().to_lowercase()
        }
    }
}

/// `AVCOL_SPC_UNSPECIFIED`.
const UNSPECIFIED: i32 = 2;

/// A field of a structure.
///
/// # Safety
/// The structure must have a `T` at this offset, and must not be written to at the same time.
pub unsafe fn read<T: Copy>(structure: *const c_void, offset: usize) -> T {
    // SAFETY: guaranteed by the caller.
    unsafe { structure.cast::<u8>().add(offset).cast::<T>().read_unaligned() }
}

/// Sets a field of a structure.
///
/// # Safety
/// The structure must have a `T` at this offset, and nobody else may use it at the same time.
pub unsafe fn write<T>(structure: *mut c_void, offset: usize, value: T) {
    // SAFETY: guaranteed by the caller.
    unsafe { structure.cast::<u8>().add(offset).cast::<T>().write_unaligned(value) }
}

/// Opens a library for ourselves: its symbols are not offered to other libraries, of which there
/// may be ones with another version of FFmpeg.
fn open(path: &Path) -> Result<*mut c_void, Refusal> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Refusal(format!("{} is no file name", path.display())))?;
    // SAFETY: the name is terminated. What runs when libraries are loaded is trusted as much as
    // they are.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(Refusal(last_error(path))) } else { Ok(handle) }
}

fn last_error(path: &Path) -> String {
    // SAFETY: the text is valid until the next call of the `dl` functions on this thread.
    unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => path.display().to_string(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    }
}

fn symbol(handle: *mut c_void, name: &str) -> Result<*mut c_void, Refusal> {
    let missing = || Refusal(format!("FFmpeg has no function {name}"));
    let text = CString::new(name).map_err(|_| missing())?;
    // SAFETY: the handle is open, and the name terminated.
    let found = unsafe { libc::dlsym(handle, text.as_ptr()) };
    if found.is_null() { Err(missing()) } else { Ok(found) }
}
