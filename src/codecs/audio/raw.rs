//! Audio of which any part can be read without the rest: uncompressed samples, G.711 and ADPCM.

use std::io::SeekFrom;

use super::adpcm::Blocks;
use super::pcm::{Coding, Pcm};
use super::{AudioFault, Limit, Result, Span, Stream, broken, truncated, unread};
use crate::value::filled;

/// Where samples are in a file, and what they are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub rate: u32,
    pub channels: usize,
    pub stored: Stored,
    /// Offset of the samples.
    pub start: u64,
    /// Their size in bytes, if the header has it.
    pub claimed: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub enum Stored {
    Samples(Coding),
    Blocks(Blocks),
}

impl Layout {
    /// The number of whole frames in so many bytes.
    fn frames(&self, bytes: u64) -> u64 {
        match self.stored {
            Stored::Samples(coding) => bytes / (self.channels * coding.bytes()) as u64,
            Stored::Blocks(blocks) => bytes / blocks.bytes as u64 * blocks.frames as u64,
        }
    }
}

pub struct Raw<'a> {
    stream: Box<dyn Stream + 'a>,
    layout: Layout,
    pub rate: u32,
    pub channels: usize,
    /// The number of frames: as claimed, but at most what the file has.
    pub frames: u64,
    pub limit: Limit,
}

/// Samples read from a file at a time; they are still in the CPU cache when they are converted.
const PIECE: usize = 16 << 10;

impl<'a> Raw<'a> {
    /// The layout's rate and channels are not 0.
    pub fn new(stream: Box<dyn Stream + 'a>, bytes: u64, layout: Layout) -> Raw<'a> {
        let Layout { rate, channels, .. } = layout;
        let present = bytes.saturating_sub(layout.start);
        let frames = layout.frames(layout.claimed.map_or(present, |claimed| claimed.min(present)));
        Raw { stream, layout, rate, channels, frames, limit: Limit::new(bytes) }
    }

    pub fn check_complete(&self, span: Span) -> Result<()> {
        let claimed = self.layout.frames(self.layout.claimed.unwrap_or(0));
        if span.end().min(claimed) <= self.frames {
            return Ok(());
        }
        let (seconds, length) = (self.seconds(self.frames), self.seconds(claimed));
        Err(truncated(AudioFault::EndsBefore { seconds, length }))
    }

    fn seconds(&self, frames: u64) -> f64 {
        frames as f64 / f64::from(self.rate)
    }

    pub fn samples_in(&self, span: Span) -> usize {
        let frames = span.end().min(self.frames) - span.start.min(self.frames);
        usize::try_from(frames).unwrap_or(usize::MAX).saturating_mul(self.channels)
    }

    /// Reads as many samples as there is room for.
    pub fn read_into<T: Pcm>(self, span: Span, samples: &mut [T]) -> Result<()> {
        let start = span.start.min(self.frames);
        match self.layout.stored {
            Stored::Samples(coding) => self.read_samples(coding, start, samples),
            Stored::Blocks(blocks) => self.read_blocks(blocks, start, samples),
        }
    }

    fn read_samples<T: Pcm>(mut self, coding: Coding, start: u64, samples: &mut [T]) -> Result<()> {
        let size = coding.bytes();
        let from = self.layout.start + start * (self.channels * size) as u64;
        if let Some(bytes) = self.stream.in_memory() {
            let bytes = usize::try_from(from).ok().and_then(|from| bytes.get(from..));
            let bytes = bytes.and_then(|bytes| bytes.get(..samples.len().checked_mul(size)?));
            let bytes = bytes.ok_or_else(|| truncated(AudioFault::EndsEarly))?;
            coding.convert(bytes, samples);
            return Ok(());
        }
        self.stream.seek(SeekFrom::Start(from)).map_err(|error| unread(&error))?;
        let mut piece = filled(0, PIECE.min(samples.len()) * size)?;
        for samples in samples.chunks_mut(PIECE) {
            let bytes = &mut piece[..samples.len() * size];
            self.stream.read_exact(bytes).map_err(|error| unread(&error))?;
            coding.convert(bytes, samples);
        }
        Ok(())
    }

    fn read_blocks<T: Pcm>(mut self, blocks: Blocks, start: u64, samples: &mut [T]) -> Result<()> {
        let (first, skipped) = (start / blocks.frames as u64, start % blocks.frames as u64);
        let from = self.layout.start + first * blocks.bytes as u64;
        self.stream.seek(SeekFrom::Start(from)).map_err(|error| unread(&error))?;
        let mut block = filled(0, blocks.bytes)?;
        let mut decoded = filled(T::SILENCE, blocks.frames * self.channels)?;
        let mut skipped = skipped as usize * self.channels;
        let (mut rest, mut number) = (samples, first);
        while !rest.is_empty() {
            self.stream.read_exact(&mut block).map_err(|error| unread(&error))?;
            if !blocks.decode(&block, &mut decoded) {
                let seconds = self.seconds(number * blocks.frames as u64);
                let text = "a block is invalid".to_string();
                return Err(broken(AudioFault::DamagedAt { seconds, text }));
            }
            let part = &decoded[skipped..];
            let count = part.len().min(rest.len());
            let (places, later) = rest.split_at_mut(count);
            places.copy_from_slice(&part[..count]);
            (rest, skipped, number) = (later, 0, number + 1);
        }
        Ok(())
    }
}
