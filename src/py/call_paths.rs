//! Numbers for the ways that a program takes to its calls. A way is known by its frames' code and
//! instructions, which is found without running any Python: every call asks.

use std::collections::HashMap;
use std::ffi::c_int;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

/// Ways that are known at most. Programs that create code as they run have any number.
const MOST: usize = 10_000;

/// A frame: the address of its code, and the instruction that it is at.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    code: usize,
    instruction: c_int,
}

/// From the innermost frame to the outermost.
type Way = SmallVec<[Place; 48]>;

/// Mixes a few words; it need not withstand attacks.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_i32(&mut self, word: i32) {
        self.write_u64(word as u64);
    }
}

/// Each way keeps its code alive, so that no other code can have its address.
struct Known {
    number: u32,
    _code: Vec<Py<PyAny>>,
}

type Ways = HashMap<Box<[Place]>, Known, BuildHasherDefault<Mix>>;

/// All that are known. Replaced after a fork, since a thread of the parent may have held the lock.
static WAYS: AtomicPtr<Mutex<Ways>> = AtomicPtr::new(null_mut());

fn ways() -> &'static Mutex<Ways> {
    let mut found = WAYS.load(Ordering::Acquire);
    if found.is_null() {
        let made = Box::into_raw(Box::new(Mutex::new(Ways::default())));
        let before = WAYS.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        found = match before {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: it was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
    }
    // SAFETY: it is from `Box::into_raw`, and never freed once it is in `WAYS`.
    unsafe { &*found }
}

/// The frames around the Python function that calls this.
fn way(_attached: Python<'_>) -> Way {
    let mut way = Way::new();
    // SAFETY: the thread is attached. `PyEval_GetFrame` lends its frame; the others and their code
    // are owned, and given back. All are on the stack, so that their code lives until this returns.
    unsafe {
        let asking = ffi::PyEval_GetFrame();
        let mut frame = match asking.is_null() {
            true => null_mut(),
            false => ffi::PyFrame_GetBack(asking),
        };
        while !frame.is_null() {
            let code = ffi::PyFrame_GetCode(frame);
            way.push(Place { code: code as usize, instruction: instruction(frame) });
            ffi::Py_DECREF(code.cast());
            let outer = ffi::PyFrame_GetBack(frame);
            ffi::Py_DECREF(frame.cast());
            frame = outer;
        }
    }
    way
}

/// # Safety
/// The thread is attached, and the frame is valid.
#[cfg(Py_3_11)]
unsafe fn instruction(frame: *mut ffi::PyFrameObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { ffi::PyFrame_GetLasti(frame) }
}

/// The line is as good, only slower to find.
///
/// # Safety
/// The thread is attached, and the frame is valid.
#[cfg(not(Py_3_11))]
unsafe fn instruction(frame: *mut ffi::PyFrameObject) -> c_int {
    // SAFETY: as the caller says.
    unsafe { ffi::PyFrame_GetLineNumber(frame) }
}

/// The number of the way to the caller of the function that asks; 0 if it has none.
#[pyfunction]
pub fn known_path(py: Python<'_>) -> u32 {
    let way = way(py);
    let ways = ways().lock().unwrap_or_else(PoisonError::into_inner);
    ways.get(&way[..]).map_or(0, |known| known.number)
}

/// Gives the way to the caller of the function that asks a number.
#[pyfunction]
pub fn remember_path(py: Python<'_>, number: u32) {
    let way = way(py);
    let code = way.iter().map(|place| {
        // SAFETY: the frames are still on the stack, and own their code.
        unsafe { Bound::from_borrowed_ptr(py, place.code as *mut ffi::PyObject) }.unbind()
    });
    let known = Known { number, _code: code.collect() };
    let mut all = ways().lock().unwrap_or_else(PoisonError::into_inner);
    let full = if all.len() >= MOST { std::mem::take(&mut *all) } else { Ways::default() };
    let before = all.insert(way[..].into(), known);
    // What goes may run code of its own, which may get here.
    drop(all);
    drop((full, before));
}

/// Forgets all, in a forked child.
#[pyfunction]
pub fn forget_paths() {
    WAYS.store(null_mut(), Ordering::Release);
}
