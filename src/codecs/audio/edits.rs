//! The edit list of an MP4 file, or the tag in its place: which part of a track is meant to be heard.
//! Encoders put silence in front and fill up the last packet.

use std::io::SeekFrom;

use super::{Result, Stream, read_at, unread};

/// What an MP4 file says about one of its tracks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    pub track: u32,
    /// Units per second; 0 if they are unknown.
    pub scale: u32,
    /// The start of what is heard, in units of the track.
    pub start: u64,
    /// Its length in the same units, give or take `precision`.
    pub length: Option<u64>,
    pub precision: u64,
    /// Whether packets are in fragments all over the file, so that no table has them all.
    pub fragmented: bool,
}

/// Limit against files that consist of nothing but boxes.
const MOST_BOXES: usize = 10_000;
const MOST_FRAGMENTS: usize = 1 << 20;

/// The edits of all tracks. Damaged ones count as none: the demultiplexer reports damage.
pub fn read(stream: &mut Box<dyn Stream + '_>) -> Result<Vec<Edits>> {
    let bytes = stream.seek(SeekFrom::End(0)).map_err(|error| unread(&error))?;
    let mut reader = Reader { stream, left: MOST_BOXES };
    let mut found = Vec::new();
    reader.edits(bytes, &mut found);
    Ok(found)
}

/// The length of the longest table that symphonia searches from its start for each packet.
pub fn longest_table(stream: &mut Box<dyn Stream + '_>, bytes: u64) -> u64 {
    let mut reader = Reader { stream, left: MOST_FRAGMENTS };
    let (mut at, mut longest, mut fragments) = (0, 0, 0);
    while let Some(found) = reader.next(at, bytes) {
        at = found.end;
        match &found.name {
            b"moov" | b"trak" | b"mdia" | b"minf" | b"stbl" | b"traf" => at = found.start,
            b"moof" => {
                at = found.start;
                fragments += 1;
            }
            b"stts" | b"stsc" | b"trun" => {
                let entries = reader.bytes(found.start + 4).map_or(0, u32::from_be_bytes);
                // An entry has four bytes at least.
                longest = longest.max(u64::from(entries).min((found.end - found.start) / 4));
            }
            _ => {}
        }
    }
    longest.max(fragments)
}

struct Reader<'a, 'b> {
    stream: &'a mut Box<dyn Stream + 'b>,
    left: usize,
}

/// A box: its name and where its content is.
struct Found {
    name: [u8; 4],
    start: u64,
    end: u64,
}

impl Reader<'_, '_> {
    /// Adds the edits of all tracks; stops early at damage.
    fn edits(&mut self, end: u64, all: &mut Vec<Edits>) -> Option<()> {
        let movie = self.find(0, end, b"moov")?;
        let header = self.find(movie.start, movie.end, b"mvhd")?;
        let movie_scale = self.time_scale(&header)?;
        let fragmented = self.find(movie.start, movie.end, b"mvex").is_some();
        let tag = self.tag(&movie);
        let mut at = movie.start;
        loop {
            let found = self.next(at, movie.end)?;
            at = found.end;
            if &found.name == b"trak" {
                let track = self.number(&found)?;
                let mut edits = self.of_track(&found, movie_scale).unwrap_or_default();
                if let Some((start, length)) = tag
                    && self.find(found.start, found.end, b"edts").is_none()
                {
                    edits = Edits { start, length: Some(length), ..edits };
                }
                all.push(Edits { track, fragmented, ..edits });
            }
        }
    }

    fn of_track(&mut self, track: &Found, movie_scale: u32) -> Option<Edits> {
        let media = self.find(track.start, track.end, b"mdia")?;
        let header = self.find(media.start, media.end, b"mdhd")?;
        let scale = self.time_scale(&header)?;
        let none = Edits { scale, ..Edits::default() };
        let Some(edits) = self.find(track.start, track.end, b"edts") else { return Some(none) };
        let list = self.find(edits.start, edits.end, b"elst")?;
        let [version, _, _, _, a, b, c, d] = self.bytes(list.start)?;
        let entries = u32::from_be_bytes([a, b, c, d]);
        let mut kept = None;
        for index in 0..u64::from(entries).min(MOST_BOXES as u64) {
            let (length, start) = match version {
                0 => {
                    let [a, b, c, d, e, f, g, h] = self.bytes(list.start + 8 + index * 12)?;
                    let start = i32::from_be_bytes([e, f, g, h]);
                    (u64::from(u32::from_be_bytes([a, b, c, d])), i64::from(start))
                }
                _ => {
                    let at = list.start + 8 + index * 20;
                    let [length, start] = [self.bytes(at)?, self.bytes(at + 8)?];
                    (u64::from_be_bytes(length), i64::from_be_bytes(start))
                }
            };
            // A negative start stands for a pause.
            if let Ok(start) = u64::try_from(start) {
                // Several parts are not put together; the first one up to the end is heard.
                let length = if kept.is_none() { Some(length) } else { None };
                kept = Some((kept.map_or(start, |(start, _)| start), length));
            }
        }
        let (start, length) = kept?;
        // 0 is the length of a movie that is still being written.
        let length = length.filter(|&length| length > 0);
        let scaled = |length: u64| {
            let length = u128::from(length) * u128::from(scale) / u128::from(movie_scale);
            u64::try_from(length).unwrap_or(u64::MAX)
        };
        let precision = u64::from(scale.div_ceil(movie_scale)) + 1;
        Some(Edits { start, length: length.map(scaled), precision, ..none })
    }

    /// Start and length of what is heard, in samples, as Apple's encoders tag files that they write
    /// without an edit list.
    fn tag(&mut self, movie: &Found) -> Option<(u64, u64)> {
        let data = self.find(movie.start, movie.end, b"udta")?;
        let meta = self.find(data.start, data.end, b"meta")?;
        // After its version.
        let list = self.find(meta.start + 4, meta.end, b"ilst")?;
        let mut at = list.start;
        loop {
            let item = self.next(at, list.end)?;
            at = item.end;
            if &item.name != b"----" {
                continue;
            }
            let Some(name) = self.find(item.start, item.end, b"name") else { continue };
            if name.end - name.start != 12 || &self.bytes(name.start + 4)? != b"iTunSMPB" {
                continue;
            }
            let text = self.find(item.start, item.end, b"data")?;
            // Hexadecimal numbers: zero, the delay, the padding and the length.
            let text: [u8; 44] = self.bytes(text.start + 8)?;
            let mut numbers = std::str::from_utf8(&text).ok()?.split_ascii_whitespace();
            let mut number = |skipped| u64::from_str_radix(numbers.nth(skipped)?, 16).ok();
            return Some((number(1)?, number(1)?));
        }
    }

    /// Units per second, from a box that is like `mvhd`.
    fn time_scale(&mut self, found: &Found) -> Option<u32> {
        let [version, ..] = self.bytes::<4>(found.start)?;
        let scale = self.bytes(found.start + if version == 0 { 12 } else { 20 })?;
        Some(u32::from_be_bytes(scale)).filter(|&scale| scale > 0)
    }

    /// The number of a track.
    fn number(&mut self, track: &Found) -> Option<u32> {
        let header = self.find(track.start, track.end, b"tkhd")?;
        let [version, ..] = self.bytes::<4>(header.start)?;
        let number = self.bytes(header.start + if version == 0 { 12 } else { 20 })?;
        Some(u32::from_be_bytes(number))
    }

    fn find(&mut self, start: u64, end: u64, name: &[u8; 4]) -> Option<Found> {
        let mut at = start;
        loop {
            let found = self.next(at, end)?;
            at = found.end;
            if found.name == *name {
                return Some(found);
            }
        }
    }

    /// The box at a position.
    fn next(&mut self, at: u64, end: u64) -> Option<Found> {
        self.left = self.left.checked_sub(1)?;
        (at.checked_add(8)? <= end).then_some(())?;
        let [a, b, c, d, name @ ..] = self.bytes::<8>(at)?;
        let (start, size) = match u32::from_be_bytes([a, b, c, d]) {
            // Up to the end of the file.
            0 => (at + 8, end - at),
            1 => (at + 16, u64::from_be_bytes(self.bytes(at + 8)?)),
            size => (at + 8, u64::from(size)),
        };
        let end = at.checked_add(size)?.min(end);
        (start <= end).then_some(Found { name, start, end })
    }

    fn bytes<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        read_at(self.stream, at, &mut bytes).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn boxed(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes()[..], name, content].concat()
    }

    fn movie(list: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 12];
        header.extend(1000_u32.to_be_bytes());
        let mut track_header = vec![0; 12];
        track_header.extend(7_u32.to_be_bytes());
        let mut media_header = vec![0; 12];
        media_header.extend(16000_u32.to_be_bytes());
        let track = [
            boxed(b"tkhd", &track_header),
            boxed(b"edts", &boxed(b"elst", list)),
            boxed(b"mdia", &boxed(b"mdhd", &media_header)),
        ];
        let movie = [boxed(b"mvhd", &header), boxed(b"trak", &track.concat())];
        [boxed(b"ftyp", b"M4A "), boxed(b"moov", &movie.concat())].concat()
    }

    fn edits(file: &[u8], track: u32) -> Edits {
        let mut stream: Box<dyn Stream> = Box::new(Cursor::new(file));
        let all = read(&mut stream).unwrap_or_default();
        all.into_iter().find(|edits| edits.track == track).unwrap_or_default()
    }

    #[test]
    fn delays_and_lengths_are_found() {
        let file = movie(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 7, 208, 0, 0, 4, 0, 0, 1, 0, 0]);
        let found = Edits {
            track: 7,
            scale: 16000,
            start: 1024,
            length: Some(32000),
            precision: 17,
            fragmented: false,
        };
        assert_eq!(edits(&file, 7), found);
        assert_eq!(edits(&file, 8), Edits::default());
        for cut in 0..file.len() {
            let _ = edits(&file[..cut], 7);
        }
    }

    #[test]
    fn tags_count_without_an_edit_list() {
        let text = b" 00000000 00000840 000001CA 00000000003F31F6 00000000";
        let item = |name: &[u8]| {
            let name = boxed(b"name", &[&[0; 4], name].concat());
            boxed(b"----", &[name, boxed(b"data", &[&[0; 8], &text[..]].concat())].concat())
        };
        let list = boxed(b"ilst", &[item(b"iTunNORM"), item(b"iTunSMPB")].concat());
        let data = boxed(b"udta", &boxed(b"meta", &[&[0; 4], &list[..]].concat()));
        let tagged = |mut file: Vec<u8>| {
            let start = file.windows(4).position(|name| name == b"moov").unwrap_or(4) - 4;
            file.extend(&data);
            let size = (file.len() - start) as u32;
            file[start..start + 4].copy_from_slice(&size.to_be_bytes());
            file
        };
        let list = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 7, 208, 0, 0, 4, 0, 0, 1, 0, 0];
        let file = tagged(movie(&list));
        assert_eq!(edits(&file, 7).start, 1024);
        let at = file.windows(4).position(|name| name == b"edts").unwrap_or(0);
        let mut file = file;
        file[at..at + 4].copy_from_slice(b"free");
        let found = edits(&file, 7);
        assert_eq!((found.start, found.length, found.scale), (0x840, Some(0x3f31f6), 16000));
        for cut in 0..file.len() {
            let _ = edits(&file[..cut], 7);
        }
    }

    #[test]
    fn pauses_are_skipped() {
        let pause = [0, 0, 0, 9, 255, 255, 255, 255, 0, 1, 0, 0];
        let sound = [0, 0, 0, 0, 0, 0, 0, 5, 0, 1, 0, 0];
        let file = movie(&[&[0, 0, 0, 0, 0, 0, 0, 2][..], &pause, &sound].concat());
        let found = edits(&file, 7);
        assert_eq!((found.start, found.length), (5, None));
    }

    #[test]
    fn the_longest_table_is_found() {
        let table = boxed(b"stts", &[&[0, 0, 0, 0, 0, 0, 0, 3][..], &[0; 24]].concat());
        let tables = boxed(b"stbl", &[table, boxed(b"stsc", &[0, 0, 0, 0, 9, 9, 9, 9])].concat());
        let movie = boxed(b"moov", &boxed(b"trak", &boxed(b"mdia", &boxed(b"minf", &tables))));
        let longest = |file: &[u8]| {
            let mut stream: Box<dyn Stream> = Box::new(Cursor::new(file));
            longest_table(&mut stream, file.len() as u64)
        };
        assert_eq!(longest(&movie), 3);
        assert_eq!(longest(&[movie, boxed(b"moof", b"").repeat(5)].concat()), 5);
        assert_eq!(longest(b""), 0);
    }

    #[test]
    fn boxes_without_a_size_end_the_search() {
        assert_eq!(edits(&[0, 0, 0, 1, 0, 0, 0, 0].repeat(4), 1), Edits::default());
        assert_eq!(edits(&boxed(b"free", b"").repeat(20_000), 1), Edits::default());
    }
}
