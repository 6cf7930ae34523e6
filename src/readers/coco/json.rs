//! A streaming JSON parser: it builds no tree, holds only a piece of the file in memory, and skips
//! what isn't needed.

use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::readers::ranges::Unreadable;
use crate::readers::read::ReadFault;
use crate::value::{Cause, Problem, append, io_fault, problems};

/// Bytes read at a time; they stay in the CPU cache while they are parsed.
const PIECE: usize = 256 << 10;

/// Limit on the length of a number. (No measurement has this many digits.)
const LONGEST_NUMBER: usize = 400;

problems! {
    /// What is wrong with a text.
    pub enum JsonFault {
        At { line: u64, byte: u64, problem: Problem },
        Ends,
        Unexpected { wanted: &'static str, found: u8 },
        Unterminated,
        HalfCharacter { half: u32 },
        Escape,
        LongNumber,
        NotANumber,
        NotWhole { value: f64 },
    }
}

/// What is wrong with a text, and where.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    /// Counted from 1; 0 if the text could not be read.
    pub line: u64,
    /// Counted from 0.
    pub byte: u64,
    pub problem: Problem,
    /// Whether the system is the cause.
    pub system: bool,
}

impl From<Cause> for Wrong {
    fn from(cause: Cause) -> Wrong {
        let (problem, system) = ReadFault::of(cause);
        Wrong { line: 0, byte: 0, problem, system }
    }
}

impl Wrong {
    /// As a problem of a file.
    pub fn of_file(self, file: &Path) -> Unreadable {
        let Wrong { line, byte, problem, system } = self;
        let problem = match line {
            0 => problem,
            _ => JsonFault::At { line, byte, problem }.into(),
        };
        Unreadable { system, ..Unreadable::new(file, problem).option("annotations") }
    }
}

pub type Result<T> = std::result::Result<T, Wrong>;

pub struct Scanner<R> {
    input: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    /// The number of bytes and lines before the buffer.
    bytes: u64,
    lines: u64,
    key: Vec<u8>,
}

impl<R: Read> Scanner<R> {
    pub fn new(input: R) -> Result<Scanner<R>> {
        let buffer = vec![0; PIECE].into_boxed_slice();
        let (bytes, lines, key) = (0, 0, Vec::new());
        let mut scanner = Scanner { input, buffer, at: 0, end: 0, bytes, lines, key };
        scanner.want(3)?;
        if scanner.rest().starts_with(b"\xEF\xBB\xBF") {
            scanner.at = 3;
        }
        Ok(scanner)
    }

    /// An error at the current position.
    pub fn wrong(&self, problem: impl Into<Problem>) -> Wrong {
        let lines = self.buffer[..self.at].iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (line, byte) = (self.lines + lines + 1, self.bytes + self.at as u64);
        Wrong { line, byte, problem: problem.into(), system: false }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Reads until `count` bytes are available, or the text ends.
    fn want(&mut self, count: usize) -> Result<()> {
        debug_assert!(count <= PIECE);
        if self.end - self.at >= count {
            return Ok(());
        }
        let gone = self.at;
        self.lines += self.buffer[..gone].iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.bytes += gone as u64;
        self.buffer.copy_within(gone..self.end, 0);
        (self.at, self.end) = (0, self.end - gone);
        while self.end < count {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(io_fault(&error).into()),
            }
        }
        Ok(())
    }

    /// The next byte that is not whitespace; `None` at the end of the text.
    fn peek(&mut self) -> Result<Option<u8>> {
        loop {
            while self.at < self.end {
                let byte = self.buffer[self.at];
                if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                    return Ok(Some(byte));
                }
                self.at += 1;
            }
            self.want(1)?;
            if self.at == self.end {
                return Ok(None);
            }
        }
    }

    /// The first byte of the next value.
    pub fn look(&mut self) -> Result<u8> {
        self.peek()?.ok_or_else(|| self.wrong(JsonFault::Ends))
    }

    fn expected(&mut self, wanted: &'static str) -> Wrong {
        match self.peek() {
            Ok(Some(found)) => self.wrong(JsonFault::Unexpected { wanted, found }),
            Ok(None) => self.wrong(JsonFault::Ends),
            Err(wrong) => wrong,
        }
    }

    fn take(&mut self, byte: u8, what: &'static str) -> Result<()> {
        if self.peek()? != Some(byte) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Checks that nothing follows.
    pub fn finish(&mut self) -> Result<()> {
        match self.peek()? {
            None => Ok(()),
            Some(_) => Err(self.expected("end")),
        }
    }

    /// Calls `each` for every item of a list; it must read or skip the item.
    pub fn list(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.take(b'[', "list")?;
        if self.look()? == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            each(self)?;
            match self.look()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.expected(",]")),
            }
        }
    }

    /// Calls `each` for every member of an object, with the result of `known` for its name; it must
    /// read or skip the value.
    pub fn object<K>(
        &mut self,
        known: impl Fn(&[u8]) -> K,
        mut each: impl FnMut(&mut Self, K) -> Result<()>,
    ) -> Result<()> {
        self.take(b'{', "object")?;
        if self.look()? == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.look()? != b'"' {
                return Err(self.expected("name"));
            }
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            self.text(&mut key)?;
            let name = known(&key);
            self.key = key;
            self.take(b':', ":")?;
            each(self, name)?;
            match self.look()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.expected(",}")),
            }
        }
    }

    /// Appends a string as UTF-8.
    pub fn text(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.take(b'"', "text")?;
        loop {
            let rest = self.rest();
            let plain = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let plain = plain.unwrap_or(rest.len());
            append(out, &rest[..plain])?;
            self.at += plain;
            self.want(1)?;
            match self.rest().first() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(out)?,
                Some(0..0x20) => return Err(self.wrong(JsonFault::Unterminated)),
                Some(_) => {}
                None => return Err(self.wrong(JsonFault::Ends)),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<()> {
        self.want(12)?;
        let code = |digits: Option<&[u8]>| {
            let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let rest = self.rest();
        let (character, length) = match rest.get(1) {
            Some(&byte @ (b'"' | b'\\' | b'/')) => (Some(byte as char), 2),
            Some(b'b') => (Some('\u{8}'), 2),
            Some(b'f') => (Some('\u{c}'), 2),
            Some(b'n') => (Some('\n'), 2),
            Some(b'r') => (Some('\r'), 2),
            Some(b't') => (Some('\t'), 2),
            Some(b'u') => match (code(rest.get(2..6)), rest.get(6..8), code(rest.get(8..12))) {
                // Characters beyond 16 bits are surrogate pairs.
                (Some(high @ 0xD800..0xDC00), Some(b"\\u"), Some(low @ 0xDC00..0xE000)) => {
                    (char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12)
                }
                (Some(half @ 0xD800..0xE000), ..) => {
                    return Err(self.wrong(JsonFault::HalfCharacter { half }));
                }
                (code, ..) => (code.and_then(char::from_u32), 6),
            },
            _ => (None, 0),
        };
        let character = character.ok_or_else(|| self.wrong(JsonFault::Escape))?;
        self.at += length;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    pub fn number(&mut self) -> Result<f64> {
        self.look()?;
        self.want(LONGEST_NUMBER + 1)?;
        let text = self.rest();
        let digits = |from: usize| {
            text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let sign = usize::from(text.first() == Some(&b'-'));
        let whole = digits(sign);
        let mut end = sign + whole;
        let mut places = 0;
        let mut complete = whole > 0;
        if complete && text.get(end) == Some(&b'.') {
            places = digits(end + 1);
            complete = places > 0;
            end += 1 + places;
        }
        // With so few digits, the integer is exact, and so is the power of ten: a single rounding
        // by the division gives the nearest number.
        const EXACT: usize = 15;
        if complete && whole + places <= EXACT && !matches!(text.get(end), Some(b'e' | b'E')) {
            let all = text[sign..end].iter().filter(|&&byte| byte != b'.');
            let value = all.fold(0_u64, |value, byte| value * 10 + u64::from(byte - b'0'));
            let value = value as f64 / POWERS[places];
            self.at += end;
            return Ok(if sign == 1 { -value } else { value });
        }
        if complete && matches!(text.get(end), Some(b'e' | b'E')) {
            let signed = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + signed);
            complete = exponent > 0;
            end += 1 + signed + exponent;
        }
        if !complete {
            return Err(self.expected("number"));
        }
        if end > LONGEST_NUMBER {
            return Err(self.wrong(JsonFault::LongNumber));
        }
        let value = std::str::from_utf8(&text[..end]).ok().and_then(|text| text.parse().ok());
        let value = value.ok_or_else(|| self.wrong(JsonFault::NotANumber))?;
        self.at += end;
        Ok(value)
    }

    /// An integer.
    pub fn integer(&mut self) -> Result<i64> {
        /// Up to here, all integers can be represented.
        const LARGEST: f64 = (1_u64 << 53) as f64;
        let value = self.number()?;
        if value.fract() != 0.0 || value.abs() > LARGEST {
            return Err(self.wrong(JsonFault::NotWhole { value }));
        }
        Ok(value as i64)
    }

    /// Skips a value, looking only at brackets and quotes.
    pub fn skip(&mut self) -> Result<()> {
        let mut depth = 0_usize;
        match self.look()? {
            b'"' => return self.skip_text(),
            b'[' | b'{' => {}
            b'-' | b'0'..=b'9' => return self.number().map(drop),
            b't' | b'f' | b'n' => return self.word().map(drop),
            _ => return Err(self.expected("value")),
        }
        loop {
            let mut at = self.at;
            while at < self.end {
                let kind = KINDS[self.buffer[at] as usize];
                if kind == PLAIN {
                    at += 1;
                    continue;
                }
                if kind == QUOTE {
                    break;
                }
                at += 1;
                if kind == OPEN {
                    depth += 1;
                } else {
                    depth -= 1;
                    if depth == 0 {
                        self.at = at;
                        return Ok(());
                    }
                }
            }
            self.at = at;
            if at < self.end {
                self.skip_text()?;
                continue;
            }
            self.want(1)?;
            if self.at == self.end {
                return Err(self.wrong(JsonFault::Ends));
            }
        }
    }

    fn skip_text(&mut self) -> Result<()> {
        self.at += 1;
        loop {
            let rest = self.rest();
            let plain = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\'));
            self.at += plain.unwrap_or(rest.len());
            self.want(2)?;
            match self.rest() {
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(());
                }
                [b'\\', _, ..] => self.at += 2,
                [] | [b'\\'] => return Err(self.wrong(JsonFault::Ends)),
                _ => {}
            }
        }
    }

    /// `true`, `false`, or `null`, which is `None`.
    pub fn word(&mut self) -> Result<Option<bool>> {
        self.look()?;
        self.want(6)?;
        for (word, value) in [(&b"true"[..], Some(true)), (b"false", Some(false)), (b"null", None)]
        {
            if let Some(rest) = self.rest().strip_prefix(word)
                && !rest.first().is_some_and(u8::is_ascii_alphanumeric)
            {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.expected("value"))
    }
}

const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

const PLAIN: u8 = 0;
const QUOTE: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;

const KINDS: [u8; 256] = {
    let mut kinds = [PLAIN; 256];
    kinds[b'"' as usize] = QUOTE;
    kinds[b'[' as usize] = OPEN;
    kinds[b'{' as usize] = OPEN;
    kinds[b']' as usize] = CLOSE;
    kinds[b'}' as usize] = CLOSE;
    kinds
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns a few bytes at a time.
    struct Drips<'a>(&'a [u8], usize);

    impl Read for Drips<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            out[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn scanners(text: &str) -> impl Iterator<Item = Scanner<Drips<'_>>> {
        [1, 2, 3, 7, 1000].map(|n| Scanner::new(Drips(text.as_bytes(), n)).unwrap()).into_iter()
    }

    #[test]
    fn numbers_are_the_nearest() {
        for text in ["0", "-0.5", "12.25", "1e3", "-2.5E-3", "0.1", "473.07", "123456789012345678"]
        {
            for mut scanner in scanners(text) {
                assert_eq!(scanner.number(), Ok(text.parse().unwrap()), "{text}");
                assert_eq!(scanner.finish(), Ok(()));
            }
        }
        for text in ["", "-", ".5", "1.", "1e", "NaN", "+1", &"1".repeat(500)] {
            for mut scanner in scanners(text) {
                assert!(scanner.number().is_err(), "{text}");
            }
        }
    }

    #[test]
    fn texts_lose_their_escapes() {
        let mut found = Vec::new();
        for mut scanner in scanners(r#""a\"\\\/\n\u00e9\ud83d\ude00é""#) {
            found.clear();
            scanner.text(&mut found).unwrap();
            assert_eq!(std::str::from_utf8(&found), Ok("a\"\\/\né\u{1F600}é"));
        }
        for text in [r#""\ud83d""#, r#""\x""#, r#""\u00g0""#, "\"a", "\"a\nb\"", "\"\\"] {
            for mut scanner in scanners(text) {
                assert!(scanner.text(&mut Vec::new()).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn what_is_passed_over_has_an_end() {
        let text = r#" [ {"a": [1, "]}\"", {}], "b": null}, [[]], "x", true, -1.5e3 ] 7"#;
        for mut scanner in scanners(text) {
            scanner.skip().unwrap();
            assert_eq!(scanner.integer(), Ok(7));
        }
        for text in ["[", "{\"a", "[\"\\", "", "]", "nul", "trues"] {
            for mut scanner in scanners(text) {
                assert!(scanner.skip().is_err(), "{text}");
            }
        }
    }

    #[test]
    fn errors_say_where() {
        for mut scanner in scanners("\n\n[1,\n 2.5]") {
            let wrong = scanner.list(|scanner| scanner.integer().map(drop)).unwrap_err();
            assert_eq!(wrong.line, 4, "{wrong:?}");
        }
    }
}
