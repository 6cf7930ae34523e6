//! What operators do to samples. `contract` says what a kernel is, `numeric` is what kernels compute
//! with; every other module is a family of operators, under the name that it has in Python.

pub(crate) mod audio;
mod audio_effects;
mod augmentation;
mod auto_aug;
mod boxes;
mod color;
pub(crate) mod contract;
mod coordinates;
mod crop;
mod debayer;
mod decoders;
mod distortions;
mod dump_image;
mod fill;
mod filters;
mod flow;
mod generic;
mod geometry;
mod math;
mod mixing;
mod multi_paste;
mod noise;
mod normalize;
pub(crate) mod numeric;
mod patches;
mod photometric;
mod random;
mod reductions;
pub(crate) mod regions;
pub(crate) mod resize;
mod segmentation;
mod sequence;
mod shape;
mod transforms;
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
pub use contract::registry::{Family, Operator, find, intern, names, operator, register, traits};
pub use contract::uniform::{Placement, UniformBatch};
pub use decoders::audio::Wanted as WantedAudio;
#[cfg(feature = "python")]
pub(crate) use decoders::protected;
pub use generic::cast::cast as convert;
pub use numeric::draw::{Draw, Places, SampleDraw};
pub use numeric::philox::{Position, Stream, below};

use crate::value::Kind;

pub type Result<T> = std::result::Result<T, crate::value::Cause>;

/// Every family: a new one is its module above, and its line here.
const FAMILIES: &[Family] = &[
    audio::FAMILY,
    audio_effects::FAMILY,
    augmentation::FAMILY,
    auto_aug::FAMILY,
    boxes::FAMILY,
    color::FAMILY,
    coordinates::FAMILY,
    crop::FAMILY,
    debayer::FAMILY,
    decoders::FAMILY,
    distortions::FAMILY,
    dump_image::FAMILY,
    fill::FAMILY,
    filters::FAMILY,
    flow::FAMILY,
    generic::FAMILY,
    geometry::FAMILY,
    math::FAMILY,
    mixing::FAMILY,
    multi_paste::FAMILY,
    noise::FAMILY,
    normalize::FAMILY,
    patches::FAMILY,
    photometric::FAMILY,
    random::FAMILY,
    reductions::FAMILY,
    regions::FAMILY,
    resize::FAMILY,
    segmentation::FAMILY,
    sequence::FAMILY,
    shape::FAMILY,
    transforms::FAMILY,
    warp::FAMILY,
];

/// All kinds of problems that kernels report.
pub fn problems() -> impl Iterator<Item = &'static Kind> {
    let shared = [
        contract::frames::problem::Frames::KINDS,
        contract::problems::Argument::KINDS,
        contract::problems::Input::KINDS,
        #[cfg(any(test, feature = "probes"))]
        contract::probe::problem::Probe::KINDS,
    ];
    shared.into_iter().chain(FAMILIES.iter().flat_map(|family| family.problems).copied()).flatten()
}
