//! Clips of videos: which there are (`clips`, `list`), and decoding them.

mod clips;
mod list;
mod resizing;
mod sound;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::SmallVec;

use self::clips::{Clips, Cut, Places, Room, Span, Tails};
use self::list::{Bounds, Line, Meaning, Times, Unit, at_line};
use self::sound::Wanted;
use super::files::{Files, Hash};
use super::glob::Globs;
use super::listing::list as list_folders;
use super::options::{Names, Options};
use super::ranges::{Damage, Opened, Unreadable, broken, look_through, read_text};
use super::source::{OpenError, Output, Part, Result, Skipped, Source, fetched};
use crate::codecs::Output as Colors;
use crate::codecs::video::clip::Padding;
use crate::codecs::video::{Choice, Elements, Index, Request, Video, is_miscounted};
use crate::kernels::Allocate;
use crate::value::{Cause, DType, Desc, Layout, Problem, Sample, problems};

pub use self::list::ClipListFault;

problems! {
    /// What is wrong with a video of a data set.
    pub enum ClipFault {
        /// The file has fewer frames than when the data set was opened.
        Changed { frames: usize, wanted: usize },
        TooMany,
    }
}

/// Clips by number.
struct Videos {
    files: Files,
    clips: Clips,
    /// Ranges of files that can't be read, and why.
    unread: HashMap<usize, Problem>,
    skipped: Vec<Skipped>,
    request: Request,
    elements: Elements,
    /// Frames a second that are taken; `None` for all frames.
    fps: Option<f64>,
    has_labels: bool,
    numbers: Option<Numbers>,
    times: bool,
    sound: Option<Wanted>,
    /// Whether all clips have the same shape.
    uniform: bool,
}

/// Which frame numbers are an output.
#[derive(Clone, Copy, PartialEq)]
enum Numbers {
    First,
    All,
}

/// What happens to files that can't be read.
#[derive(Clone, Copy, PartialEq)]
enum Unread {
    Refused,
    LeftOut,
    /// They are clips that can't be read.
    Kept,
}

impl Times for Index {
    fn count(&self) -> u64 {
        self.frames.len() as u64
    }

    fn time(&self, frame: u64) -> f64 {
        self.seconds(frame as usize)
    }

    fn first(&self) -> f64 {
        self.start()
    }

    fn end(&self) -> f64 {
        self.duration()
    }
}

/// What is found of a file, or of a line of a list.
#[derive(Default)]
struct Found {
    frames: Range<u64>,
    /// Of the result; `None` if that shows later.
    size: Option<[usize; 2]>,
    /// The line is invalid for this file.
    fault: Option<ClipListFault>,
}

/// The files of a data set, and what a list says of them.
struct Listed {
    files: Files,
    lines: Vec<Line>,
    text: Vec<u8>,
    path: PathBuf,
    meaning: Option<Meaning>,
    has_labels: bool,
}

impl Listed {
    fn of(files: Files, has_labels: bool) -> Listed {
        let (lines, text, path) = (vec![], vec![], PathBuf::new());
        Listed { files, lines, text, path, meaning: None, has_labels }
    }

    /// Those in `files`, in the text file `list`, or in the folders of `root`.
    fn take(options: &mut Options) -> Result<Listed, OpenError> {
        if let Some(names) = options.take::<Option<Names>>("files")? {
            let labels: Option<Vec<i32>> = options.take("labels")?;
            let has_labels = labels.is_some();
            let labels = labels.unwrap_or_else(|| vec![0; names.ends.len()]);
            let mut files = Files::default();
            names.iter().zip(labels).for_each(|(name, label)| files.push(name, label));
            return Ok(Listed::of(files, has_labels));
        }
        if let Some(root) = options.take::<Option<PathBuf>>("root")? {
            let files = list_folders(&root, None, &Globs::new(&["*"], false))?;
            return Ok(Listed::of(files, true));
        }
        let path: PathBuf = options.take("list")?;
        let meaning = Some(Meaning::take(options)?);
        let text = read_text(&path).map_err(|error| error.option("list"))?;
        let mut files = Files::default();
        let lines = list::parse(&text, &mut files)
            .map_err(|fault| Unreadable::new(&path, fault).option("list"))?;
        Ok(Listed { files, lines, text, path, meaning, has_labels: true })
    }

    /// The frames of a video that are read, with all of them numbered in the order of showing.
    fn range(&self, number: usize, index: &Index) -> Result<Range<u64>, ClipListFault> {
        let bounds = self.lines.get(number).map_or(Bounds::default(), |line| line.bounds);
        match self.meaning {
            Some(meaning) => meaning.range(bounds, index),
            None => Ok(0..index.count()),
        }
    }

    /// The text of a line, for messages.
    fn line(&self, number: usize) -> (usize, &[u8]) {
        let line = self.lines.get(number).map_or(0, |line| line.number);
        let text = self.text.split(|&byte| byte == b'\n').nth(line.saturating_sub(1));
        (line, text.unwrap_or_default())
    }
}

impl Meaning {
    fn take(options: &mut Options) -> Result<Meaning, OpenError> {
        let units =
            [("frames", Unit::Frames), ("seconds", Unit::Seconds), ("stamps", Unit::Stamps)];
        Ok(Meaning {
            unit: options.choice("unit", &units)?,
            start_up: options.take("start_up")?,
            end_up: options.take("end_up")?,
            clamped: options.take("clamped")?,
            zero_is_end: options.take("zero_is_end")?,
        })
    }
}

impl Cut {
    fn take(options: &mut Options) -> Result<Cut, OpenError> {
        let whole = |options: &mut Options, name| {
            let given: usize = options.take(name)?;
            match given {
                0 => Err(OpenError::Options(format!("the option {name:?} must be positive"))),
                given => Ok(given as u64),
            }
        };
        let length = whole(options, "length")?;
        let stride = whole(options, "stride")?;
        let step = whole(options, "step")?;
        let count = whole(options, "clips")?;
        let tails = [("none", Tails::None), ("one", Tails::One), ("all", Tails::All)];
        let tails = options.choice("tails", &tails)?;
        let room =
            options.choice("room", &[("strides", Room::Strides), ("frames", Room::Frames)])?;
        let places = [
            ("steps", Places::Steps { step, room, tails }),
            ("spread", Places::Spread),
            ("even", Places::Even { count }),
            ("every", Places::Every),
        ];
        let pad: String = options.take("pad")?;
        let unknown = || OpenError::Options(format!("the option \"pad\" has no choice {pad:?}"));
        let pad = Padding::parse(&pad).ok_or_else(unknown)?;
        let places = options.choice("places", &places)?;
        Ok(Cut { length, stride, places, pad })
    }
}

/// Opens the videos in `files`, in the text file `list`, or in the folders of `root`.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let listed = Listed::take(options)?;
    let cut = Cut::take(options)?;
    let fps: Option<f64> = options.take("fps")?;
    let unread =
        [("raise", Unread::Refused), ("leave_out", Unread::LeftOut), ("keep", Unread::Kept)];
    let unread = options.choice("unreadable", &unread)?;
    let request = request(options)?;
    let mut videos = Videos {
        files: Files::default(),
        clips: Clips::new(cut),
        unread: HashMap::new(),
        skipped: vec![],
        request,
        elements: match (options.take("is_float")?, options.take("is_normalized")?) {
            (false, _) => Elements::U8,
            (true, false) => Elements::F32(1.0),
            (true, true) => Elements::F32(255.0),
        },
        fps,
        has_labels: listed.has_labels,
        numbers: match options.take::<Option<String>>("frame_numbers")?.as_deref() {
            None => None,
            Some("scalar") => Some(Numbers::First),
            Some(_) => Some(Numbers::All),
        },
        times: options.take("timestamps")?,
        sound: Wanted::take(options)?,
        uniform: true,
    };
    videos.fill(listed, unread)?;
    Ok(Arc::new(videos))
}

fn request(options: &mut Options) -> Result<Request, OpenError> {
    let colors = [("rgb", Colors::Rgb), ("gray", Colors::Gray), ("ycbcr", Colors::YCbCr)];
    let output = options.choice("image_type", &colors)?;
    let fill: Vec<i64> = options.take("fill")?;
    let channel = |number: usize| {
        let value = fill.get(number).or(fill.first()).copied().unwrap_or(0);
        value.clamp(0, 255) as u8
    };
    let fill = [channel(0), channel(1), channel(2)];
    let resized = resizing::take(options)?;
    let upright = options.take("adjust_orientation")?;
    Ok(Request { output, upright, resized, fill, ..Request::default() })
}

impl Videos {
    /// Looks through all files, in parallel, for their frames.
    fn fill(&mut self, listed: Listed, unread: Unread) -> Result<(), OpenError> {
        let count = listed.files.len();
        let paths: Vec<PathBuf> = (0..count).map(|n| listed.files.path(n).into_owned()).collect();
        let look = |number: usize, path: &Path, found: &mut Found| {
            let video = opened(path).map_err(|cause| Unreadable::of(path, cause))?;
            let index = video.index();
            match listed.range(number, index) {
                Ok(range) => found.frames = taken(range, self.fps, index),
                Err(fault) => found.fault = Some(fault),
            }
            let size = (index.stream.height, index.stream.width);
            found.size = self.request.size(size, index.stream.orientation).ok();
            Ok::<(), Damage>(())
        };
        let option = if listed.has_labels && listed.meaning.is_none() { "root" } else { "files" };
        let option = if listed.meaning.is_some() { "list" } else { option };
        let looked = look_through(&paths, unread != Unread::Refused, look);
        let looked = looked.map_err(|error| error.option(option))?;
        let mut size = None;
        for (number, (found, damage)) in looked.into_iter().enumerate() {
            let file = u32::try_from(number).unwrap_or(u32::MAX);
            let label = listed.files.label(number);
            let span = Span { file, label, frames: found.frames };
            if let Some(fault) = found.fault {
                let (line, text) = listed.line(number);
                let fault = at_line(line, text, fault);
                return Err(Unreadable::new(&listed.path, fault).option("list").into());
            }
            let pushed = match damage {
                Some(damage) if unread == Unread::Kept => {
                    let reason = damage.error.reason(&paths[number]);
                    self.unread.insert(self.clips.spans().len(), reason);
                    self.clips.push_one(span)
                }
                Some(damage) => {
                    let text = paths[number].display().to_string();
                    let problem = damage.error.reason(&paths[number]);
                    self.skipped.push(Skipped { file: number, line: 0, text, problem });
                    continue;
                }
                None if span.frames.is_empty() => {
                    let (line, text) = listed.line(number);
                    let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
                    let problem = ClipListFault::Empty.into();
                    self.skipped.push(Skipped { file: number, line, text, problem });
                    continue;
                }
                None => {
                    self.uniform &=
                        found.size.is_some() && *size.get_or_insert(found.size) == found.size;
                    self.clips.push(span)
                }
            };
            if pushed.is_none() {
                return Err(Unreadable::new(&paths[number], ClipFault::TooMany)
                    .option(option)
                    .into());
            }
        }
        self.files = listed.files;
        Ok(())
    }

    /// The frames of a clip in its file, with `None` for those that are filled.
    fn frames(&self, number: usize, index: &Index) -> Vec<Option<usize>> {
        let (_, frames) = self.clips.frames(number);
        let frame = |frame: u64| match self.fps {
            Some(fps) => index.frame_at(frame as f64 / fps),
            None => frame as usize,
        };
        frames.into_iter().map(|number| number.map(frame)).collect()
    }

    fn decode(
        &self,
        video: &Video,
        frames: &[Option<usize>],
        allocate: &Allocate<'_>,
    ) -> Result<Sample> {
        let last = frames.iter().flatten().max().copied().unwrap_or(0);
        if last >= video.len() {
            let fault = ClipFault::Changed { frames: video.len(), wanted: last + 1 };
            return Err(broken(fault));
        }
        let mut room = |desc| allocate(0, desc);
        video.decode_as(self.elements, &self.request, frames, &mut room)?.into_sample()
    }

    /// When a clip starts, in seconds of the file's own time, and how long it lasts.
    fn span(&self, frames: &[Option<usize>], index: &Index) -> (f64, f64) {
        let Some(first) = frames.iter().flatten().next().copied() else { return (0.0, 0.0) };
        let start = index.start() + index.seconds(first);
        let Cut { length, stride, places, .. } = self.clips.cut;
        let moments = length.saturating_mul(stride);
        let duration = match (self.fps, places) {
            (Some(fps), _) if places != Places::Spread => moments as f64 / fps,
            (_, Places::Spread) => {
                let last = frames.iter().flatten().max().copied().unwrap_or(first);
                index.seconds(last + 1) - index.seconds(first)
            }
            _ => index.span(first, moments),
        };
        (start, duration)
    }
}

/// Opens a video. What isn't a regular file is refused before anything waits for it.
fn opened(path: &Path) -> Result<Video> {
    Opened::open(path)?;
    Video::open(path, Choice::Video).map_err(of_the_file)
}

/// A problem with a video, as a fault of its file.
fn of_the_file(cause: Cause) -> Cause {
    match cause {
        Cause::Undecodable { problem, .. } if problem.kind == "VideoFault.NoLibrary" => {
            Cause::System { problem }
        }
        Cause::Undecodable { problem, .. } => broken(problem),
        other => other,
    }
}

/// The frames that are taken in a range of frames, if so many a second are.
fn taken(range: Range<u64>, fps: Option<f64>, index: &Index) -> Range<u64> {
    let Some(fps) = fps else { return range };
    let place = |frame: u64| {
        let inside = frame < index.count();
        let time = if inside { index.seconds(frame as usize) } else { index.duration() };
        // A little less, for rounding errors in times that are multiples of a frame's duration.
        (time * fps - 1e-6).ceil().max(0.0) as u64
    };
    place(range.start)..place(range.end)
}

impl Source for Videos {
    fn len(&self) -> usize {
        self.clips.len()
    }

    fn name(&self, number: usize) -> Arc<str> {
        let (span, _) = self.clips.find(number);
        self.files.path(self.clips.spans()[span].file as usize).to_string_lossy().into()
    }

    /// Depends on names, labels, and the frames of clips.
    fn fingerprint(&self) -> u64 {
        let mut hash = Hash::new(self.files.fingerprint());
        let Cut { length, stride, .. } = self.clips.cut;
        for word in [length, stride, self.fps.unwrap_or(0.0).to_bits()] {
            hash.word(word);
        }
        for (span, &end) in self.clips.spans().iter().zip(self.clips.ends()) {
            hash.word(u64::from(span.file));
            hash.word(span.frames.start);
            hash.word(span.frames.end);
            hash.word(end as u64);
        }
        hash.finish()
    }

    fn outputs(&self) -> Vec<Part> {
        let layout = Layout::new("FHWC").unwrap_or_default();
        let video =
            Output { layout, uniform: self.uniform, ..Output::new(self.elements.dtype(), 4) };
        let label = self.has_labels.then(|| Output::uniform(DType::I32, 1));
        let numbers = self.numbers.map(|_| Output::uniform(DType::I32, 1));
        let times = self.times.then(|| Output::uniform(DType::F64, 1));
        let sound = self.sound.as_ref().map(Wanted::output);
        fetched([Some(video), label, numbers, times, sound].into_iter().flatten())
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        let (place, _) = self.clips.find(number);
        if let Some(problem) = self.unread.get(&place) {
            return Err(broken(problem.clone()));
        }
        let span = &self.clips.spans()[place];
        let mut video = opened(&self.files.path(span.file as usize))?;
        let mut frames = self.frames(number, video.index());
        let mut made = self.decode(&video, &frames, allocate);
        if made.as_ref().is_err_and(is_miscounted) && video.recount().map_err(of_the_file)? {
            frames = self.frames(number, video.index());
            made = self.decode(&video, &frames, allocate);
        }
        let mut outputs: SmallVec<[Sample; 1]> = SmallVec::new();
        outputs.push(made.map_err(of_the_file)?);
        if self.has_labels {
            let mut label = allocate(outputs.len(), Desc::new(DType::I32, &[1]))?;
            label.elements::<i32>()[0] = span.label;
            outputs.push(label.into_sample()?);
        }
        if let Some(numbers) = self.numbers {
            let count = if numbers == Numbers::First { 1 } else { frames.len() };
            let mut out = allocate(outputs.len(), Desc::new(DType::I32, &[count]))?;
            let frame = |frame: &Option<usize>| frame.map_or(-1, |frame| frame as i32);
            out.elements::<i32>().iter_mut().zip(&frames).for_each(|(to, of)| *to = frame(of));
            outputs.push(out.into_sample()?);
        }
        if self.times {
            let mut out = allocate(outputs.len(), Desc::new(DType::F64, &[frames.len()]))?;
            let time = |frame: &Option<usize>| frame.map_or(-1.0, |n| video.index().seconds(n));
            out.elements::<f64>().iter_mut().zip(&frames).for_each(|(to, of)| *to = time(of));
            outputs.push(out.into_sample()?);
        }
        if let Some(wanted) = &self.sound {
            let (start, duration) = self.span(&frames, video.index());
            let room = |desc| allocate(outputs.len(), desc);
            let made = wanted.read(&video, start, duration, &room);
            outputs.push(made.map_err(of_the_file)?);
        }
        Ok(outputs)
    }

    fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// The clips of a video, or of a line of the list.
    fn groups(&self) -> Option<&[usize]> {
        Some(self.clips.ends())
    }

    fn computes(&self) -> bool {
        true
    }
}
