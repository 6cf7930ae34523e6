//! Speech manifests: a line of JSON per utterance, with its audio file and its text.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::files::Hash;
use super::options::Options;
use super::ranges::{broken, read_text};
use super::read::{FileStream, Opened};
use super::remote::note;
use super::source::{OpenError, Output, Part, Result, Skipped, Source, fetched, in_a_row};
use crate::codecs::audio::{Sound, Span, Stream};
use crate::kernels::{Allocate, Resampler, WantedAudio};
use crate::value::{Cause, DType, Desc, Problem, Sample, problems};

/// The utterances of manifests, stored as one block of text and a few arrays.
#[derive(Default)]
pub struct Manifest {
    /// File names and texts, alternating.
    texts: Vec<u8>,
    ends: Vec<usize>,
    spans: Vec<Seconds>,
    /// Utterances that stand for a manifest that can't be read, in order, and the reason.
    unread: Vec<(usize, Problem)>,
    /// Invalid lines.
    skipped: Vec<Skipped>,
}

problems! {
    /// What is wrong with a manifest, one of its lines, or an audio file.
    pub enum ManifestFault {
        Unreadable { problem: Problem },
        NotObject,
        NoKey,
        NoValue,
        NotText { key: &'static str },
        NotNumber { key: &'static str },
        Value,
        CutOff,
        Trailing,
        NoFile,
        Offset { length: f64, frames: u64, offset: f64 },
        EndsBefore { offset: f64 },
        Sound { problem: Problem },
    }
}

/// The part of an audio file, in seconds; a negative duration means up to the end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds {
    offset: f64,
    duration: f64,
}

/// The range of durations of utterances to take.
#[derive(Clone, Copy)]
pub struct Durations {
    pub least: f64,
    pub most: f64,
}

impl Manifest {
    /// Adds the utterances of a manifest; `manifest` is its number. Invalid lines are skipped.
    pub fn add(&mut self, manifest: usize, text: &[u8], durations: Durations) {
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match Entry::parse(line) {
                Ok(entry) => {
                    let Seconds { duration, .. } = entry.span;
                    if !(duration < durations.least || duration > durations.most) {
                        self.push(&entry);
                    }
                }
                Err(problem) => {
                    let shown: String = String::from_utf8_lossy(line).chars().take(80).collect();
                    self.skipped.push(Skipped {
                        file: manifest,
                        line: number + 1,
                        text: shown,
                        problem: problem.into(),
                    });
                }
            }
        }
    }

    /// Adds an utterance that can't be read, which stands for a whole manifest.
    pub fn add_unread(&mut self, manifest: Vec<u8>, reason: Problem) {
        self.unread.push((self.len(), reason));
        // NaN marks it: no line of a manifest has such an offset.
        let span = Seconds { offset: f64::NAN, duration: -1.0 };
        self.push(&Entry { file: manifest, text: Vec::new(), span });
    }

    fn unread(&self, number: usize) -> Option<&Problem> {
        let found = self.unread.binary_search_by_key(&number, |(number, _)| *number);
        found.ok().map(|place| &self.unread[place].1)
    }

    fn push(&mut self, entry: &Entry) {
        for text in [&entry.file, &entry.text] {
            self.texts.extend_from_slice(text);
            self.ends.push(self.texts.len());
        }
        self.spans.push(entry.span);
    }

    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    fn part(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.texts[start..self.ends[index]]
    }

    /// Its file name, which may not be UTF-8.
    pub fn file(&self, number: usize) -> &[u8] {
        self.part(2 * number)
    }

    pub fn text(&self, number: usize) -> &[u8] {
        self.part(2 * number + 1)
    }

    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash(self.len() as u64);
        for (number, span) in self.spans.iter().enumerate() {
            hash.bytes(self.file(number));
            hash.bytes(self.text(number));
            hash.word(span.offset.to_bits());
            hash.word(span.duration.to_bits());
        }
        hash.finish()
    }
}

/// The contents of a line.
#[derive(Debug, PartialEq)]
struct Entry {
    file: Vec<u8>,
    text: Vec<u8>,
    span: Seconds,
}

impl Entry {
    fn parse(line: &[u8]) -> Result<Entry, ManifestFault> {
        let mut json = Json(line);
        let (mut file, mut text) = (None, Vec::new());
        let mut span = Seconds { offset: 0.0, duration: -1.0 };
        if !json.eat(b'{') {
            return Err(ManifestFault::NotObject);
        }
        let mut more = !json.eat(b'}');
        while more {
            let key = json.string().ok_or(ManifestFault::NoKey)?;
            if !json.eat(b':') {
                return Err(ManifestFault::NoValue);
            }
            let missing = json.word(b"null");
            match &key[..] {
                _ if missing => {}
                b"audio_filepath" => {
                    file = Some(
                        json.string().ok_or(ManifestFault::NotText { key: "audio_filepath" })?,
                    );
                }
                b"text" => text = json.string().ok_or(ManifestFault::NotText { key: "text" })?,
                b"duration" => {
                    span.duration =
                        json.number().ok_or(ManifestFault::NotNumber { key: "duration" })?;
                }
                b"offset" => {
                    span.offset = json.number().ok_or(ManifestFault::NotNumber { key: "offset" })?
                }
                _ => json.skip().ok_or(ManifestFault::Value)?,
            }
            more = json.eat(b',');
            if !more && !json.eat(b'}') {
                return Err(ManifestFault::CutOff);
            }
        }
        if !json.0.trim_ascii_start().is_empty() {
            return Err(ManifestFault::Trailing);
        }
        match file {
            Some(file) => Ok(Entry { file, text, span }),
            None => Err(ManifestFault::NoFile),
        }
    }
}

/// The unparsed rest of a line of JSON.
struct Json<'a>(&'a [u8]);

impl Json<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        self.word(&[byte])
    }

    fn word(&mut self, word: &[u8]) -> bool {
        let rest = self.0.trim_ascii_start().strip_prefix(word);
        if let Some(rest) = rest {
            self.0 = rest;
        }
        rest.is_some()
    }

    /// A string; escapes become UTF-8, all other bytes are kept, since file names may be anything.
    fn string(&mut self) -> Option<Vec<u8>> {
        self.eat(b'"').then_some(())?;
        let mut text = Vec::new();
        loop {
            let plain = self.0.iter().position(|&b| b == b'"' || b == b'\\')?;
            text.extend_from_slice(&self.0[..plain]);
            let quote = self.0[plain] == b'"';
            self.0 = &self.0[plain + 1..];
            if quote {
                return Some(text);
            }
            let (&escaped, rest) = self.0.split_first()?;
            self.0 = rest;
            let byte = match escaped {
                b'"' | b'\\' | b'/' => escaped,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'u' => {
                    text.extend_from_slice(self.unicode()?.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                _ => return None,
            };
            text.push(byte);
        }
    }

    /// The character after `\u`; those beyond 16 bits are written as a surrogate pair.
    fn unicode(&mut self) -> Option<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        self.0 = self.0.strip_prefix(b"\\u")?;
        let low = self.hex()?.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)
    }

    fn hex(&mut self) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(4)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        self.0 = rest;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    }

    fn number(&mut self) -> Option<f64> {
        let rest = self.0.trim_ascii_start();
        let part = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let (digits, rest) =
            rest.split_at(rest.iter().position(|b| !part(b)).unwrap_or(rest.len()));
        self.0 = rest;
        str::from_utf8(digits).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// Skips a value of any kind, without recursion, which a line could make arbitrarily deep.
    fn skip(&mut self) -> Option<()> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let rest = self.0.trim_ascii_start();
            match rest.first()? {
                b'"' => {
                    self.string()?;
                }
                &bracket @ (b'{' | b'[') => {
                    open.push(bracket + 2);
                    self.0 = &rest[1..];
                    continue;
                }
                &bracket @ (b'}' | b']') => {
                    (open.pop()? == bracket).then_some(())?;
                    self.0 = &rest[1..];
                }
                b',' | b':' if !open.is_empty() => {
                    self.0 = &rest[1..];
                    continue;
                }
                _ if self.word(b"true") || self.word(b"false") || self.word(b"null") => {}
                _ => {
                    self.number()?;
                }
            }
            if open.is_empty() {
                return Some(());
            }
        }
    }
}

/// The utterances of a manifest: their decoded audio, and other outputs.
pub struct Speech {
    pub manifest: Manifest,
    pub downmix: bool,
    pub dtype: DType,
    /// The sampling rate to resample to, and how.
    pub resample: Option<(f64, Resampler)>,
    /// Whether the sampling rates of the files are an output.
    pub rate: bool,
    /// The other outputs.
    pub ready: Vec<Known>,
}

/// What is known of an utterance without reading its file.
#[derive(Clone, Copy, PartialEq)]
pub enum Known {
    Text,
    Number,
}

impl Stream for FileStream {
    fn in_memory(&self) -> Option<&[u8]> {
        match self {
            FileStream::File(_) => None,
            FileStream::Memory(bytes) => Some(bytes.get_ref()),
        }
    }
}

/// Opens the manifests in `files`. With `tolerant`, a manifest that can't be read becomes an
/// utterance that can't be read.
pub fn open(options: &mut Options) -> Result<Arc<dyn Source>, OpenError> {
    let files: Vec<PathBuf> = options.take("files")?;
    let tolerant: bool = options.take("tolerant")?;
    let durations = Durations {
        // Unknown durations are negative, and excluded only if there is a minimum.
        least: options.take::<Option<f64>>("min_duration")?.unwrap_or(f64::NEG_INFINITY),
        most: options.take::<Option<f64>>("max_duration")?.unwrap_or(f64::INFINITY),
    };
    let mut manifest = Manifest::default();
    for (number, file) in files.iter().enumerate() {
        match read_text(file) {
            Ok(text) => {
                note(&text);
                manifest.add(number, &text, durations);
            }
            Err(error) if tolerant && !error.system => {
                let reason = ManifestFault::Unreadable { problem: error.problem }.into();
                manifest.add_unread(file.as_os_str().as_bytes().to_vec(), reason);
            }
            Err(error) => return Err(error.into()),
        }
    }
    let dtype: DType = options.take("dtype")?;
    if !matches!(dtype, DType::F32 | DType::I16 | DType::I32) {
        return Err(OpenError::Options("sounds are of float32, int16 or int32".into()));
    }
    let rate: Option<f64> = options.take("sample_rate")?;
    let rate = rate.filter(|&rate| rate > 0.0 && rate.is_finite());
    let quality = options.take("quality")?;
    let wanted: [(Known, bool); 2] =
        [(Known::Text, options.take("texts")?), (Known::Number, options.take("numbers")?)];
    Ok(Arc::new(Speech {
        manifest,
        downmix: options.take("downmix")?,
        dtype,
        resample: rate.map(|rate| (rate, Resampler::new(quality))),
        rate: options.take("rates")?,
        ready: wanted.into_iter().filter_map(|(known, wanted)| wanted.then_some(known)).collect(),
    }))
}

impl Source for Speech {
    fn len(&self) -> usize {
        self.manifest.len()
    }

    fn fetch(
        &self,
        number: usize,
        _: usize,
        allocate: &Allocate<'_>,
    ) -> Result<SmallVec<[Sample; 1]>> {
        if let Some(reason) = self.manifest.unread(number) {
            return Err(Cause::File { problem: reason.clone() });
        }
        let file = Opened::open_whole(Path::new(OsStr::from_bytes(self.manifest.file(number))))?;
        let sound = Sound::open(Box::new(file.into_stream()?)).map_err(of_the_file)?;
        let rate = sound.rate();
        let Seconds { offset, duration } = self.manifest.spans[number];
        let span = Span::seconds(offset, duration, rate);
        let frames = sound.frames();
        if let Some(frames) = frames.filter(|&frames| span.start > frames) {
            let length = frames as f64 / f64::from(rate);
            return Err(broken(ManifestFault::Offset { length, frames, offset }));
        }
        let resample = self.resample.as_ref().map(|(to, resampler)| (*to, resampler));
        let wanted = WantedAudio { downmix: self.downmix, dtype: self.dtype, resample };
        let samples = wanted.read(sound, span, allocate).map_err(of_the_file)?;
        // If the header doesn't give the length, reading shows that the audio is too short.
        let missed = span.start > 0 && span.frames != Some(0) && samples.desc.elements() == 0;
        if frames.is_none() && missed {
            return Err(broken(ManifestFault::EndsBefore { offset }));
        }
        let mut made = smallvec![samples];
        if self.rate {
            let mut buffer = allocate(1, Desc::new(DType::F32, &[]))?;
            buffer.elements::<f32>()[0] = rate as f32;
            made.push(buffer.into_sample()?);
        }
        Ok(made)
    }

    fn outputs(&self) -> Vec<Part> {
        let samples = Output::new(self.dtype, if self.downmix { 1 } else { 2 });
        let rate = self.rate.then(|| Output::uniform(DType::F32, 0));
        let mut parts = fetched([samples].into_iter().chain(rate));
        parts.extend(self.ready.iter().map(|known| match known {
            Known::Text => Part::Ready(Output::new(DType::U8, 1)),
            Known::Number => Part::Ready(Output::uniform(DType::I64, 1)),
        }));
        parts
    }

    fn ready(&self, numbers: &[usize], part: usize) -> Result<Vec<Sample>> {
        match self.ready.get(part.wrapping_sub(1)) {
            Some(Known::Text) => {
                let text = |&number: &usize| self.manifest.text(number);
                in_a_row(&numbers.iter().map(text).collect::<Vec<_>>())
            }
            _ => {
                let numbers: Vec<i64> = numbers.iter().map(|&number| number as i64).collect();
                in_a_row(&numbers.iter().map(std::slice::from_ref).collect::<Vec<_>>())
            }
        }
    }

    fn skipped(&self) -> &[Skipped] {
        &self.manifest.skipped
    }

    fn fingerprint(&self) -> u64 {
        self.manifest.fingerprint()
    }

    fn name(&self, number: usize) -> Arc<str> {
        String::from_utf8_lossy(self.manifest.file(number)).into()
    }
}

/// A problem with the audio, as a fault of its file.
fn of_the_file(cause: Cause) -> Cause {
    match cause {
        Cause::Undecodable { problem, .. } => broken(ManifestFault::Sound { problem }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Durations = Durations { least: 0.0, most: f64::INFINITY };

    #[test]
    fn lines_are_utterances() {
        let text = r#"{"audio_filepath": "a.wav", "duration": 1.5, "text": "h\u00e9 \"x\" \ud83d\ude00"}

{"text":"b","x":[1,{"y":[]},"]"],"offset":2e-1,"audio_filepath":"b.wav","z":null,"w":true}
"#;
        let mut manifest = Manifest::default();
        let whole = Durations { least: f64::NEG_INFINITY, most: f64::INFINITY };
        manifest.add(0, text.as_bytes(), whole);
        assert_eq!(manifest.skipped, []);
        assert_eq!(
            (manifest.len(), manifest.file(0), manifest.text(0)),
            (2, &b"a.wav"[..], "hé \"x\" 😀".as_bytes())
        );
        assert_eq!((manifest.file(1), manifest.text(1)), (&b"b.wav"[..], &b"b"[..]));
        assert_eq!(manifest.spans[1], Seconds { offset: 0.2, duration: -1.0 });
        let mut timed = Manifest::default();
        timed.add(0, text.as_bytes(), ANY);
        assert_eq!(timed.len(), 1);
    }

    #[test]
    fn invalid_lines_are_skipped() {
        for line in [
            "foo",
            "[1]",
            "{",
            "{}",
            r#"{"a":"#,
            r#"{"a":1"#,
            r#"{"text":5}"#,
            r#"{"a":[}"#,
            r#"{"audio_filepath":"x","duration":"1"}"#,
            r#"{"audio_filepath":"x"} {}"#,
            r#"{"audio_filepath":"x","duration":NaN}"#,
            r#"{"audio_filepath":"\ud800"}"#,
            r#"{"audio_filepath":"\q"}"#,
            r#"{"audio_filepath":null}"#,
            r#"{"a":,}"#,
        ] {
            let mut manifest = Manifest::default();
            manifest.add(0, line.as_bytes(), ANY);
            assert_eq!((manifest.skipped.len(), manifest.len()), (1, 0), "{line}");
        }
    }

    #[test]
    fn deep_values_are_no_trouble() {
        let deep =
            format!(r#"{{"a":{}{},"audio_filepath":"x"}}"#, "[".repeat(99999), "]".repeat(99999));
        let whole = Durations { least: -2.0, most: f64::INFINITY };
        let mut manifest = Manifest::default();
        manifest.add(0, deep.as_bytes(), whole);
        assert_eq!((manifest.len(), &manifest.skipped[..]), (1, &[][..]));
    }
}
