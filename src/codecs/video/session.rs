//! An open video: finds and decodes frames by number.

use std::time::Duration;

use super::ffmpeg::{
    Bytes, Choice, Decoder, Demuxer, Frame, Library, NO_PTS, OpenFault, Packet, Read, Received,
};
use super::index::{Index, Key, Scan};
use super::{VideoFault, broken, late, patience};
use crate::kernels::contract::problems::argument;
use crate::value::{Cause, Damage};

type Result<T> = std::result::Result<T, Cause>;

/// Receives a decoded frame and its number.
pub type Deliver<'a> = dyn FnMut(usize, &Frame) -> Result<()> + 'a;

pub struct Session {
    library: &'static Library,
    bytes: Bytes,
    choice: Choice,
    patience: Duration,
    demuxer: Demuxer,
    decoder: Decoder,
    frame: Frame,
    /// The number of the packet to read next.
    next: usize,
    /// Whether the demuxer's current packet has been read, but not been decoded.
    pending: Option<Packet>,
    /// When the last decoded frame is shown.
    last: i64,
    /// When the key frame that decoding started from is shown.
    start: i64,
    /// Number of frames since the start of the file, if decoding started there.
    count: Option<usize>,
    ended: bool,
}

/// How far decoding got.
enum Outcome {
    /// This many frames were delivered; the rest is better reached by a seek.
    Delivered(usize),
    /// After so many frames, one did not come.
    Missing(usize, Loss),
}

enum Loss {
    /// Frames after it came.
    Skipped,
    Ended,
    Damaged(String),
}

/// Where to start decoding.
#[derive(Clone, Copy)]
enum Way {
    /// The key frame, by the time that it is shown, as most containers look it up.
    Shown,
    /// The key frame, by the time that it is decoded.
    Decoded,
    Start,
}

impl Session {
    pub fn open(bytes: Bytes, choice: Choice) -> Result<Session> {
        let Some(library) = Library::get() else {
            return Err(broken(VideoFault::NoLibrary));
        };
        let patience = patience();
        if bytes.size() == 0 {
            let problem = VideoFault::Empty.into();
            return Err(Cause::Undecodable { kind: Damage::Truncated, problem });
        }
        let opened = Demuxer::open(library, bytes.clone(), choice, patience);
        let demuxer = opened.map_err(|fault| unopened_as(choice, fault))?;
        let Some(decoder) = Decoder::open(&demuxer)? else {
            return Err(broken(VideoFault::Codec { name: demuxer.stream().codec }));
        };
        let frame = Frame::new(library)?;
        Ok(Session {
            library,
            bytes,
            choice,
            patience,
            demuxer,
            decoder,
            frame,
            next: 0,
            pending: None,
            last: NO_PTS,
            start: NO_PTS,
            count: Some(0),
            ended: false,
        })
    }

    /// How far away a frame is, roughly: frames before the current one need a seek.
    pub fn distance(&self, frame: usize) -> usize {
        frame.checked_sub(self.next).unwrap_or(usize::MAX)
    }

    /// Reads all packets, or all frames if the packets don't tell them apart.
    pub fn index(&mut self) -> Result<Index> {
        let stream = self.demuxer.stream();
        let mut scan = Scan::new(&stream.codec, self.demuxer.extradata());
        // A file with more packets than bytes is hostile.
        let most = usize::try_from(self.bytes.size()).unwrap_or(usize::MAX).min(1 << 31);
        while let Read::Packet(packet) = self.demuxer.read().map_err(unopened)? {
            if scan.len() >= most || !scan.push(packet, self.demuxer.data()) {
                return Err(Cause::Memory { bytes: scan.len() * size_of::<Packet>() });
            }
        }
        let guessed = stream.container == "avi" && scan.is_reordered();
        let mut index = scan.finish(stream);
        self.next = usize::MAX;
        self.count = None;
        if index.counted {
            return self.count_frames(&index);
        }
        // AVI has no times for frames that are stored in another order, so FFmpeg guesses them.
        if guessed
            && let Ok(counted) = self.count_frames(&index)
            && counted.frames != index.frames
        {
            return Ok(counted);
        }
        let leading = index.leading();
        if leading > 0 {
            let found = self.leading_frames(&index)?;
            let mut rest = index.frames.split_off(leading);
            index.frames.retain(|pts| found.contains(pts));
            index.frames.append(&mut rest);
        }
        match index.frames.is_empty() {
            true => Err(broken(VideoFault::NoFrames)),
            false => Ok(index),
        }
    }

    /// The times of the frames that decoding all of the file gives.
    pub fn count_frames(&mut self, index: &Index) -> Result<Index> {
        self.restart()?;
        let mut frames: Vec<i64> = Vec::new();
        loop {
            match self.step() {
                Ok(true) => {
                    let after = frames.last().map_or(0, |last| last.saturating_add(1));
                    let pts = self.frame.pts();
                    // Frames without a time follow the one before. In AVI, all do: each takes a
                    // tick.
                    let follows = pts == NO_PTS || index.stream.container == "avi";
                    frames.push(if follows { after } else { pts.max(after) });
                }
                Ok(false) => break,
                Err(Stop::Damaged(text)) => {
                    let seconds =
                        index.seconds_per_tick() * frames.last().copied().unwrap_or(0) as f64;
                    return Err(broken(VideoFault::Damaged { frame: frames.len(), seconds, text }));
                }
                Err(Stop::Cause(cause)) => return Err(cause),
            }
        }
        self.next = usize::MAX;
        self.count = None;
        if frames.is_empty() {
            return Err(broken(VideoFault::NoFrames));
        }
        let step = match frames[..] {
            [.., before, last] => last - before,
            _ => 1,
        };
        let end = frames.last().map_or(0, |last| last.saturating_add(step));
        Ok(Index::of_frames(index.stream.clone(), frames, end))
    }

    /// Times of frames that the decoder gives before the first key frame.
    fn leading_frames(&mut self, index: &Index) -> Result<Vec<i64>> {
        self.restart()?;
        let first = index.frames[index.leading()];
        let mut found = Vec::new();
        while let Ok(true) = self.step() {
            let pts = self.frame.pts();
            if pts >= first {
                break;
            }
            if !self.frame.is_corrupt() {
                found.push(pts);
            }
        }
        self.next = usize::MAX;
        Ok(found)
    }

    /// Decodes frames, given in ascending order without repetition, and delivers each.
    pub fn decode(
        &mut self,
        index: &Index,
        wanted: &[usize],
        deliver: &mut Deliver<'_>,
    ) -> Result<()> {
        if index.counted {
            return self.decode_counted(index, wanted, deliver);
        }
        let times: Vec<i64> = wanted.iter().map(|&frame| index.frames[frame]).collect();
        let mut done = 0;
        while done < times.len() {
            let key = index.key(times[done]);
            let mut ways = [Way::Shown, Way::Decoded, Way::Start].into_iter();
            let mut is_there = self.last < times[done]
                && key.number <= self.next
                && !self.ended
                && self.next != usize::MAX;
            let mut loss = Loss::Skipped;
            let mut from_start = false;
            let delivered = loop {
                if !is_there {
                    let Some(way) = ways.next() else {
                        break Err(loss);
                    };
                    if from_start || !self.position(index, &key, way)? {
                        continue;
                    }
                    from_start = self.count == Some(0);
                }
                is_there = false;
                match self.advance(index, &wanted[done..], &times[done..], deliver)? {
                    Outcome::Delivered(count) => break Ok(count),
                    Outcome::Missing(0, found) => loss = found,
                    // What came is fine; the rest gets attempts of its own.
                    Outcome::Missing(count, _) => break Ok(count),
                }
            };
            match delivered {
                Ok(count) => done += count,
                Err(loss) => return Err(lost(index, wanted[done], loss)),
            }
        }
        Ok(())
    }

    /// Decodes from where it is, as long as that is the best way to the next frame.
    fn advance(
        &mut self,
        index: &Index,
        wanted: &[usize],
        times: &[i64],
        deliver: &mut Deliver<'_>,
    ) -> Result<Outcome> {
        let mut done = 0;
        // In other containers, the packet after a frame may have the second half of it.
        let whole = ["mov", "matroska"].iter().any(|name| index.stream.container.starts_with(name));
        loop {
            match self.decoder.receive(&mut self.frame) {
                Received::Frame => {
                    let pts = self.frame.pts();
                    self.last = self.last.max(pts);
                    if pts < times[done] {
                        // Pictures in front of the key frame may lack what they refer to.
                        if pts >= self.start && self.frame.is_corrupt() {
                            return Ok(Outcome::Missing(done, Loss::Damaged(DATA.into())));
                        }
                        continue;
                    }
                    if pts > times[done] {
                        self.next = usize::MAX;
                        return Ok(Outcome::Missing(done, Loss::Skipped));
                    }
                    if self.frame.is_corrupt() {
                        return Ok(Outcome::Missing(done, Loss::Damaged(DATA.into())));
                    }
                    deliver(wanted[done], &self.frame)?;
                    done += 1;
                    if done == times.len() || index.key(times[done]).number > self.next {
                        return Ok(Outcome::Delivered(done));
                    }
                }
                Received::Hungry => {
                    let packet = match self.pending.take() {
                        Some(packet) => Some(packet),
                        None => match self.demuxer.read().map_err(unopened)? {
                            Read::Packet(packet) => Some(packet),
                            Read::End => None,
                            Read::Broken(text) => {
                                self.next = usize::MAX;
                                return Ok(Outcome::Missing(done, Loss::Damaged(text)));
                            }
                        },
                    };
                    let Some(packet) = packet else {
                        if self.ended {
                            return Ok(Outcome::Missing(done, Loss::Ended));
                        }
                        self.ended = true;
                        if let Err(text) = self.decoder.send(None) {
                            return Ok(Outcome::Missing(done, Loss::Damaged(text)));
                        }
                        continue;
                    };
                    let before = packet.pts < times[0];
                    let unwanted =
                        packet.pts != NO_PTS && times.binary_search(&packet.pts).is_err();
                    // The second half of a frame is wanted if the first one is.
                    if !index.is_second(self.next) {
                        self.decoder.set_skipping(unwanted && (before || whole));
                    }
                    self.next += 1;
                    if let Err(text) = self.decoder.send(Some(&self.demuxer))
                        && packet.pts >= self.start
                    {
                        self.next = usize::MAX;
                        return Ok(Outcome::Missing(done, Loss::Damaged(text)));
                    }
                }
                Received::End => {
                    self.next = usize::MAX;
                    return Ok(Outcome::Missing(done, Loss::Ended));
                }
                Received::Broken(text) => {
                    self.next = usize::MAX;
                    return Ok(Outcome::Missing(done, Loss::Damaged(text)));
                }
            }
        }
    }

    /// Moves to the packet to decode first for a key frame. `false` if that did not work.
    fn position(&mut self, index: &Index, key: &Key, way: Way) -> Result<bool> {
        let time = match way {
            Way::Shown => key.pts,
            Way::Decoded => key.dts,
            Way::Start => {
                self.restart()?;
                return Ok(true);
            }
        };
        if self.count == Some(0) && key.number == 0 && self.next == 0 {
            // Nothing was read yet.
            return Ok(true);
        }
        self.next = usize::MAX;
        if !self.demuxer.seek(time) {
            return Ok(false);
        }
        let Read::Packet(packet) = self.demuxer.read().map_err(unopened)? else {
            return Ok(false);
        };
        let Some(number) = index.find(&packet).filter(|&number| number <= key.number) else {
            return Ok(false);
        };
        if !packet.key && number > 0 {
            return Ok(false);
        }
        self.forget();
        self.pending = Some(packet);
        self.next = number;
        self.start = packet.pts;
        self.count = None;
        Ok(true)
    }

    fn forget(&mut self) {
        self.decoder.flush();
        self.decoder.set_skipping(false);
        self.pending = None;
        self.last = NO_PTS;
        self.ended = false;
    }

    /// Opens the file again, which is the one way to its start that all containers have.
    fn restart(&mut self) -> Result<()> {
        if !(self.count == Some(0) && self.next == 0 && !self.ended) {
            let bytes = self.bytes.clone();
            let opened = Demuxer::open(self.library, bytes, self.choice, self.patience);
            self.demuxer = opened.map_err(unopened)?;
        }
        self.forget();
        self.start = NO_PTS;
        self.next = 0;
        self.count = Some(0);
        Ok(())
    }

    fn decode_counted(
        &mut self,
        index: &Index,
        wanted: &[usize],
        deliver: &mut Deliver<'_>,
    ) -> Result<()> {
        let Some(&first) = wanted.first() else { return Ok(()) };
        if self.count.is_none_or(|count| count > first) || self.next == usize::MAX {
            self.restart()?;
        }
        for &frame in wanted {
            loop {
                let before = self.count.unwrap_or(0);
                match self.step() {
                    Ok(true) => self.count = Some(before + 1),
                    Ok(false) => return Err(lost(index, frame, Loss::Ended)),
                    Err(Stop::Damaged(text)) => {
                        return Err(lost(index, frame, Loss::Damaged(text)));
                    }
                    Err(Stop::Cause(cause)) => return Err(cause),
                }
                if before == frame {
                    break;
                }
            }
            deliver(frame, &self.frame)?;
        }
        Ok(())
    }

    /// Decodes the next frame, whichever it is; `false` at the end.
    fn step(&mut self) -> std::result::Result<bool, Stop> {
        loop {
            match self.decoder.receive(&mut self.frame) {
                Received::Frame => return Ok(true),
                Received::End => return Ok(false),
                Received::Broken(text) => return Err(Stop::Damaged(text)),
                Received::Hungry => {}
            }
            self.decoder.set_skipping(false);
            let read = self.demuxer.read().map_err(|fault| Stop::Cause(unopened(fault)))?;
            let sent = match read {
                Read::Packet(_) => self.decoder.send(Some(&self.demuxer)),
                Read::End | Read::Broken(_) if self.ended => return Ok(false),
                Read::End | Read::Broken(_) => {
                    self.ended = true;
                    self.decoder.send(None)
                }
            };
            self.next = self.next.saturating_add(1);
            sent.map_err(Stop::Damaged)?;
        }
    }
}

enum Stop {
    Damaged(String),
    Cause(Cause),
}

/// FFmpeg's words for data that violates its format, for frames that it has flagged.
const DATA: &str = "invalid data found when processing input";

fn lost(index: &Index, frame: usize, loss: Loss) -> Cause {
    let seconds = index.seconds(frame);
    match loss {
        Loss::Skipped => broken(VideoFault::Missing { frame, seconds }),
        Loss::Damaged(text) => broken(VideoFault::Damaged { frame, seconds, text }),
        Loss::Ended => {
            let frames = index.frames.len();
            let problem = VideoFault::EndsEarly { frame, seconds, frames }.into();
            Cause::Undecodable { kind: Damage::Truncated, problem }
        }
    }
}

pub fn unopened(fault: OpenFault) -> Cause {
    unopened_as(Choice::Video, fault)
}

fn unopened_as(choice: Choice, fault: OpenFault) -> Cause {
    match fault {
        OpenFault::Cause(cause) => cause,
        OpenFault::Late => late(),
        OpenFault::NoStream { videos } => match choice {
            Choice::Numbered(number) if videos > 0 => {
                argument("stream", VideoFault::NoSuchStream { number, videos })
            }
            _ => broken(VideoFault::NoStream),
        },
        OpenFault::Format(text) => {
            let problem = VideoFault::UnknownFormat { text }.into();
            Cause::Undecodable { kind: Damage::Unknown, problem }
        }
    }
}
