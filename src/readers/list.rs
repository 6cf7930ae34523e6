//! Text files that list files: on each line a name, whitespace, and a label.

use super::files::Files;
use crate::value::{Problem, problems};

problems! {
    /// What is wrong with a list.
    #[derive(PartialEq)]
    pub enum ListFault {
        Line { line: usize, text: String, problem: Problem },
        NoLabel,
        NotANumber,
        LargeLabel,
        Folder { code: Option<i32>, text: String },
    }
}

/// An invalid line.
#[derive(Debug, PartialEq)]
pub struct ListError {
    /// Counted from 1.
    pub line: usize,
    pub text: String,
    pub fault: ListFault,
}

/// Adds the files of a list. Empty lines are ignored; names may contain spaces.
pub fn parse_list(text: &[u8], files: &mut Files) -> Result<(), ListError> {
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let trimmed = line.trim_ascii_end();
        if trimmed.is_empty() {
            continue;
        }
        let fail = |fault| ListError {
            line: number + 1,
            text: String::from_utf8_lossy(trimmed).into_owned(),
            fault,
        };
        let digits = trimmed.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        let name = trimmed[..trimmed.len() - digits.len()].trim_ascii_end();
        if name.is_empty() {
            return Err(fail(ListFault::NoLabel));
        }
        let label = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
        let whole = |digits: &str| {
            let unsigned = digits.strip_prefix('-').unwrap_or(digits);
            !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit())
        };
        let label = label.filter(|digits| whole(digits));
        let label = label.ok_or_else(|| fail(ListFault::NotANumber))?;
        let label = label.parse().map_err(|_| fail(ListFault::LargeLabel))?;
        files.push(name, label);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(String, i32)>, ListError> {
        let mut files = Files::default();
        parse_list(text.as_bytes(), &mut files)?;
        Ok((0..files.len()).map(|i| (files.name(i).to_string(), files.label(i))).collect())
    }

    #[test]
    fn lines_are_names_and_labels() {
        let text = "a/1.jpg 5\n\n  \nsp ace.jpg  7 \r\nb\t-4";
        let expected = [("a/1.jpg", 5), ("sp ace.jpg", 7), ("b", -4)];
        let expected: Vec<_> = expected.map(|(name, label)| (name.to_string(), label)).into();
        assert_eq!(parsed(text), Ok(expected));
        assert_eq!(parsed(""), Ok(vec![]));
    }

    #[test]
    fn a_bad_line_is_named() {
        for text in ["a", "a x", "a 1.5", "a 0x1", "a +1", "a -", "a 99999999999", "5"] {
            let error = parsed(&format!("ok 1\n\n{text}\n")).unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (3, text));
        }
    }
}
