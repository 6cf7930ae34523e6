//! Writes images to files for debugging: dump_image.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;

use super::{Arg, BatchKernel, Entry, Family, FromArg, OutputBuffer, Result, Samples, Work};
use crate::kernels::contract::problems::{Input, argument, unfit};
use crate::value::{DType, Desc, Sample, io_fault};

pub const FAMILY: Family = Family { kernels: &[TABLE], problems: &[problem::DumpImage::KINDS] };

const TABLE: &[Entry] =
    &[Entry { name: "dump_image", args: &["suffix"], cpu: || Work::Batch(Arc::new(DumpImage)) }];

pub mod problem {
    use crate::value::problems;

    problems! {
        /// Problems of `dump_image`.
        pub enum DumpImage {
            NotAnImage { shape: Vec<usize> },
            NotAName { given: String },
        }
    }
}

/// A batch kernel, because it must run even if the result is never used.
struct DumpImage;

impl BatchKernel for DumpImage {
    fn run(
        &self,
        args: &[Arg],
        inputs: &[&[Sample]],
        _: &dyn Fn(Desc) -> Result<OutputBuffer>,
    ) -> Result<Samples> {
        let suffix = String::from_constant(args.first().unwrap_or(&Arg::Absent))
            .map_err(|problem| argument("suffix", problem))?;
        if suffix.contains(['/', '\0']) {
            return Err(argument("suffix", problem::DumpImage::NotAName { given: suffix }));
        }
        for (index, image) in inputs[0].iter().enumerate() {
            write(&format!("{index}-{suffix}-0.ppm"), &image.compact()?)?;
        }
        Ok(inputs[0].iter().cloned().collect())
    }

    fn is_cheap(&self) -> bool {
        false
    }

    fn is_view_of(&self, _: &[&[Sample]]) -> bool {
        false
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn keeps_order(&self) -> bool {
        true
    }
}

/// Writes plain-text PPM or PGM, like DALI.
fn write(name: &str, image: &Sample) -> Result<()> {
    if image.desc.dtype != DType::U8 {
        let dtype = image.desc.dtype.name();
        return Err(unfit(0, Input::Type { wanted: "uint8", dtype }));
    }
    let &[height, width, channels] = &image.desc.shape[..] else {
        let shape = image.desc.shape.to_vec();
        return Err(unfit(0, problem::DumpImage::NotAnImage { shape }));
    };
    let kind = match channels {
        1 => "P2",
        3 => "P3",
        given => return Err(unfit(0, Input::Channels { wanted: "1 or 3", given })),
    };
    let written = || -> std::io::Result<()> {
        let mut file = BufWriter::new(File::create(name)?);
        write!(file, "{kind}\n{width} {height}\n255\n")?;
        let row = width * channels;
        if row > 0 {
            for row in image.elements::<u8>().chunks_exact(row) {
                for number in row {
                    write!(file, "{number} ")?;
                }
                file.write_all(b"\n")?;
            }
        }
        file.flush()
    };
    written().map_err(|error| io_fault(&error))
}
