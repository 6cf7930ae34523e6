//! Patterns for file names, as in shells: `*`, `?`, `[a-z]`, `[!a-z]`, `\*`.

/// A set of patterns, of which one has to match.
pub struct Globs {
    /// The suffixes of patterns such as `*.jpg`, which have no other special characters.
    suffixes: Vec<Vec<u8>>,
    others: Vec<Vec<u8>>,
    /// Bytes that a suffix can end with, which rules out most names quickly.
    last: [bool; 256],
    ignore_case: bool,
}

impl Globs {
    pub fn new<T: AsRef<[u8]>>(patterns: &[T], ignore_case: bool) -> Globs {
        let (suffixes, others, last) = (Vec::new(), Vec::new(), [false; 256]);
        let mut globs = Globs { suffixes, others, last, ignore_case };
        for pattern in patterns {
            let mut pattern = pattern.as_ref().to_vec();
            if ignore_case {
                pattern.make_ascii_lowercase();
            }
            match pattern.strip_prefix(b"*") {
                Some(rest) if !rest.iter().any(|byte| b"*?[\\".contains(byte)) => {
                    match rest.last() {
                        Some(&last) => globs.last[usize::from(last)] = true,
                        None => globs.last = [true; 256],
                    }
                    globs.suffixes.push(rest.to_vec());
                }
                _ => globs.others.push(pattern),
            }
        }
        globs
    }

    pub fn matches(&self, name: &[u8]) -> bool {
        let fold = |byte: u8| if self.ignore_case { byte.to_ascii_lowercase() } else { byte };
        let ends_with = |suffix: &Vec<u8>| {
            name.len() >= suffix.len()
                && name.iter().rev().zip(suffix.iter().rev()).all(|(&a, &b)| fold(a) == b)
        };
        if name.last().is_none_or(|&last| self.last[usize::from(fold(last))])
            && self.suffixes.iter().any(ends_with)
        {
            return true;
        }
        if self.others.is_empty() {
            return false;
        }
        let name: Vec<u8> = name.iter().map(|&byte| fold(byte)).collect();
        self.others.iter().any(|pattern| matches(pattern, &name))
    }
}

/// Backtracks to the last `*` only, so the time is at most proportional to pattern times name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            star = Some((p, n));
            p += 1;
            continue;
        }
        if n == name.len() && p == pattern.len() {
            return true;
        }
        if n < name.len()
            && p < pattern.len()
            && let Some(length) = one(&pattern[p..], name[n])
        {
            p += length;
            n += 1;
            continue;
        }
        match star {
            Some((at, from)) if from < name.len() => {
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
            _ => return false,
        }
    }
}

/// The length of the part of the pattern that matches the byte, if it does.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern[0] {
        b'?' => Some(1),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        b'[' => match set(pattern, byte) {
            Some((length, fits)) => fits.then_some(length),
            // A bracket that is never closed is an ordinary character.
            None => (byte == b'[').then_some(1),
        },
        wanted => (wanted == byte).then_some(1),
    }
}

/// The length of a set in brackets, and whether the byte is in it.
fn set(pattern: &[u8], byte: u8) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some(b'!' | b'^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut found = false;
    loop {
        let low = *pattern.get(at)?;
        if low == b']' && at > first {
            return Some((at + 1, found != negated));
        }
        if pattern.get(at + 1) == Some(&b'-') && pattern.get(at + 2).is_some_and(|&c| c != b']') {
            found |= (low..=pattern[at + 2]).contains(&byte);
            at += 3;
        } else {
            found |= low == byte;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, fits) in [
            ("*.jpg", "a.jpg", true),
            ("*.jpg", ".jpg", true),
            ("*.jpg", "a.jpeg", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("?.png", "y.png", true),
            ("?.png", ".png", false),
            ("[12].jpg", "2.jpg", true),
            ("[!12].jpg", "2.jpg", false),
            ("[^12].jpg", "3.jpg", true),
            ("[a-c]x", "bx", true),
            ("[]a]x", "]x", true),
            ("[a", "[a", true),
            ("\\*.jpg", "*.jpg", true),
            ("\\*.jpg", "a.jpg", false),
            ("{a,b}", "a", false),
            ("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(Globs::new(&[pattern], false).matches(name.as_bytes()), fits, "{pattern}");
        }
    }

    #[test]
    fn case_counts_when_asked_to() {
        for pattern in ["*.JPG", "[A]?JPG"] {
            assert!(Globs::new(&[pattern], true).matches(b"a.jpg"), "{pattern}");
            assert!(!Globs::new(&[pattern], false).matches(b"a.jpg"), "{pattern}");
        }
    }
}
