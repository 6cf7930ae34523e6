//! Arrays in the NumPy format.

use smallvec::smallvec;

use super::problem::Arrays;
use crate::codecs::npy::{Header, NpyFault, swap};
use crate::kernels::contract::problems::{Argument, unfit};
use crate::kernels::generic::cast::cast;
use crate::kernels::{
    Allocate, Arg, DirectKernel, FromArg, OutputBuffer, Result, Samples, Traits, args,
};
use crate::value::{Cause, DType, Damage, Desc, Problem, Sample, Stores, copy_strided};

pub struct DecodeNumpy;

args! {
    pub struct NumpyArgs {
        dtype: Option<DType>,
        first: Option<First>,
    }
}

/// The file of the first sample, whose rank and type the others must match.
struct First(Sample);

impl FromArg for First {
    fn from_constant(_: &Arg) -> std::result::Result<First, Problem> {
        Err(Argument::Missing { wanted: "data" }.into())
    }

    fn from_sample(sample: &Sample) -> std::result::Result<First, Problem> {
        Ok(First(sample.clone()))
    }
}

impl DirectKernel for DecodeNumpy {
    type Args = NumpyArgs;
    const TRAITS: Traits = Traits { shaped_by_args: false, ..Traits::DEFAULT };

    fn run(args: &NumpyArgs, inputs: &[Sample], allocate: &Allocate<'_>) -> Result<Samples> {
        let file = bytes(&inputs[0])?;
        let header = checked_header(&file)?;
        if let Some(First(first)) = &args.first {
            check_like(first, &header.desc, args.dtype.is_some())?;
        }
        let desc = header.desc.clone();
        let array = file.strided_part(desc.clone(), header.data as usize, header.strides())?;
        let dtype = args.dtype.unwrap_or(desc.dtype);
        if dtype == desc.dtype {
            if array.is_contiguous() && !header.swapped && !file.buffer().mutable_outside() {
                return Ok(smallvec![array]);
            }
            let mut out = allocate(0, desc)?;
            write(&array, &header, out.bytes());
            return Ok(smallvec![out.into_sample()?]);
        }
        let array = if array.is_contiguous() && !header.swapped {
            array
        } else {
            let mut stored = OutputBuffer::new(desc.clone())?;
            write(&array, &header, stored.bytes());
            stored.into_sample()?
        };
        let mut out = allocate(0, Desc { dtype, ..desc })?;
        cast(&array, &mut out.output())?;
        Ok(smallvec![out.into_sample()?])
    }
}

/// The contents of a file, contiguous.
fn bytes(sample: &Sample) -> Result<Sample> {
    if sample.desc.dtype.size() != 1 {
        let dtype = sample.desc.dtype.name();
        return Err(unfit(0, Arrays::NotBytes { dtype }));
    }
    sample.compact()
}

/// The header of a file; checks that the file has as many bytes as the header says.
fn checked_header(file: &Sample) -> Result<Header> {
    let bytes = file.elements_as_bytes();
    let unreadable = |fault: NpyFault| {
        let kind = match fault {
            NpyFault::HeaderCutOff | NpyFault::CutOff { .. } => Damage::Truncated,
            _ => Damage::Broken,
        };
        Cause::Undecodable { kind, problem: Arrays::Unreadable { problem: fault.into() }.into() }
    };
    let header = Header::of(bytes).map_err(unreadable)?;
    let left = bytes.len() as u64 - header.data;
    header.check_length(left).map_err(unreadable)?;
    let taken = header.desc.bytes() as u64;
    if taken < left {
        let shape = header.desc.shape.to_vec();
        return Err(unreadable(NpyFault::Surplus { shape, bytes: taken, left }));
    }
    Ok(header)
}

/// If the first file is unreadable, the error is reported for the first sample only.
fn check_like(first: &Sample, desc: &Desc, any_type: bool) -> Result<()> {
    let Ok(first) = bytes(first).and_then(|file| checked_header(&file)) else { return Ok(()) };
    let first = first.desc;
    if first.ndim() == desc.ndim() && (any_type || first.dtype == desc.dtype) {
        return Ok(());
    }
    Err(unfit(
        0,
        Arrays::Different {
            ndim: desc.ndim(),
            dtype: desc.dtype.name(),
            first_ndim: first.ndim(),
            first_dtype: first.dtype.name(),
        },
    ))
}

/// Writes the elements in row-major order and native byte order.
fn write(array: &Sample, header: &Header, out: &mut [u8]) {
    let size = array.desc.dtype.size();
    // SAFETY: `strided_part` checked that the strides stay inside the file.
    unsafe {
        let shape = &array.desc.shape;
        copy_strided(array.as_ptr(), &array.strides(), shape, size, out, &Stores::plain());
    }
    if header.swapped {
        swap(out, size);
    }
}
