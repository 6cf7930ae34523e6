//! What operators do to samples. `contract` says what a kernel is, `numeric` is what kernels compute
//! with; every other module is a family of operators, under the name that it has in Python.

pub(crate) mod audio;
mod color;
pub(crate) mod contract;
mod coordinates;
mod crop;
mod decoders;
mod fill;
mod filters;
mod flow;
mod generic;
mod geometry;
mod math;
mod noise;
mod normalize;
pub(crate) mod numeric;
mod patches;
mod random;
mod reductions;
pub(crate) mod regions;
mod resize;
mod sequence;
mod shape;
mod warp;

pub use audio::Resampler;
pub use contract::adapters::{
    Attempt, BatchKernel, Entry, SampleKernel, SavedPlan, UniformAttempt, Work,
};
pub(crate) use contract::args::args;
pub use contract::args::{Arg, ArgReader, FromArg, FromArgs};
pub use contract::frames::Frames;
pub use contract::kernel::{Allocate, DirectKernel, Kernel, Outputs, Samples, Traits, one};
pub use contract::output::{Output, OutputBuffer};
pub use contract::registry::{Operator, find, intern, names, operator, register, traits};
pub use contract::uniform::{Placement, UniformBatch};
pub use numeric::philox::{Position, Stream, below};

pub type Result<T> = std::result::Result<T, crate::value::Cause>;

/// All kinds of problems that kernels report.
pub const PROBLEMS: &[&[crate::value::Kind]] = &[
    contract::frames::problem::Frames::KINDS,
    contract::probe::problem::Probe::KINDS,
    contract::problems::Argument::KINDS,
    contract::problems::Input::KINDS,
    color::problem::Color::KINDS,
    coordinates::problem::Coordinates::KINDS,
    crop::problem::Crop::KINDS,
    decoders::problem::Arrays::KINDS,
    decoders::problem::Decoders::KINDS,
    decoders::problem::Inflate::KINDS,
    fill::problem::Fill::KINDS,
    filters::problem::Filters::KINDS,
    flow::problem::Flow::KINDS,
    generic::problem::Generic::KINDS,
    math::problem::Math::KINDS,
    noise::problem::Noise::KINDS,
    normalize::problem::Normalize::KINDS,
    patches::problem::Patches::KINDS,
    random::problem::Random::KINDS,
    reductions::problem::Reductions::KINDS,
    regions::problem::Regions::KINDS,
    resize::problem::Resize::KINDS,
    sequence::problem::Sequence::KINDS,
    shape::problem::Shapes::KINDS,
    warp::problem::Warp::KINDS,
];
