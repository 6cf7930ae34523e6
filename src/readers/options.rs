//! The options with which Python opens a source: values by name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::remote::is_url;
use super::source::OpenError;
use crate::value::DType;

/// Options by name. Each must be one that the format knows.
#[derive(Debug, Default)]
pub struct Options(pub Vec<(String, Given)>);

/// The value of an option.
#[derive(Debug)]
pub enum Given {
    None,
    Flag(bool),
    Int(i64),
    Float(f64),
    /// A string or a path as the system's bytes, or plain bytes.
    Bytes(Vec<u8>),
    /// A list of those, which may have millions of entries.
    Names(Names),
    Ints(Vec<i64>),
    List(Vec<Given>),
}

impl Given {
    fn first_url(&self) -> Option<&str> {
        let url = |bytes: &'_ [u8]| is_url(Path::new(OsStr::from_bytes(bytes)));
        let found = match self {
            Given::Bytes(bytes) => url(bytes).then_some(&bytes[..]),
            // Most lists have none, which one pass over the block shows.
            Given::Names(names) if names.text.windows(3).any(|bytes| bytes == b"://") => {
                names.iter().find(|name| url(name))
            }
            Given::List(list) => return list.iter().find_map(Given::first_url),
            _ => None,
        };
        std::str::from_utf8(found?).ok()
    }
}

/// Strings or paths in one block.
#[derive(Debug, Default)]
pub struct Names {
    pub text: Vec<u8>,
    /// The end of each name.
    pub ends: Vec<usize>,
}

impl Names {
    pub fn push(&mut self, name: &[u8]) {
        self.text.extend_from_slice(name);
        self.ends.push(self.text.len());
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }
}

impl Options {
    /// Takes an option. A missing one is None.
    pub fn take<T: FromGiven>(&mut self, name: &str) -> Result<T, OpenError> {
        let place = self.0.iter().position(|(key, _)| key == name);
        let given = place.map_or(Given::None, |place| self.0.swap_remove(place).1);
        T::from_given(given)
            .ok_or_else(|| OpenError::Options(format!("the option {name:?} is missing or wrong")))
    }

    /// Takes an option that is one of several strings.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Result<T, OpenError> {
        let given: String = self.take(name)?;
        let found = choices.iter().find(|(choice, _)| *choice == given);
        found.map(|(_, value)| *value).ok_or_else(|| {
            OpenError::Options(format!("the option {name:?} has no choice {given:?}"))
        })
    }

    /// The first URL among the names of files, and its option.
    pub fn first_url(&self) -> Option<(&str, &str)> {
        self.0.iter().find_map(|(option, given)| Some((&**option, given.first_url()?)))
    }

    /// Fails if there are options left.
    pub fn finish(&self) -> Result<(), OpenError> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(OpenError::Options(format!("there is no option {name:?}"))),
        }
    }
}

/// A type that an option can have.
pub trait FromGiven: Sized {
    fn from_given(given: Given) -> Option<Self>;
}

impl FromGiven for bool {
    fn from_given(given: Given) -> Option<bool> {
        if let Given::Flag(flag) = given { Some(flag) } else { None }
    }
}

impl FromGiven for i64 {
    fn from_given(given: Given) -> Option<i64> {
        if let Given::Int(number) = given { Some(number) } else { None }
    }
}

impl FromGiven for usize {
    fn from_given(given: Given) -> Option<usize> {
        usize::try_from(i64::from_given(given)?).ok()
    }
}

impl FromGiven for i32 {
    fn from_given(given: Given) -> Option<i32> {
        i32::try_from(i64::from_given(given)?).ok()
    }
}

impl FromGiven for f64 {
    fn from_given(given: Given) -> Option<f64> {
        match given {
            Given::Float(number) => Some(number),
            Given::Int(number) => Some(number as f64),
            _ => None,
        }
    }
}

impl FromGiven for f32 {
    fn from_given(given: Given) -> Option<f32> {
        f64::from_given(given).map(|number| number as f32)
    }
}

/// From its code.
impl FromGiven for DType {
    fn from_given(given: Given) -> Option<DType> {
        DType::from_code(u8::try_from(i64::from_given(given)?).ok()?)
    }
}

/// Plain bytes, such as a name. (A list of small numbers is a `Vec<i64>`.)
pub struct Bytes(pub Vec<u8>);

impl FromGiven for Bytes {
    fn from_given(given: Given) -> Option<Bytes> {
        if let Given::Bytes(bytes) = given { Some(Bytes(bytes)) } else { None }
    }
}

impl FromGiven for String {
    fn from_given(given: Given) -> Option<String> {
        String::from_utf8(Bytes::from_given(given)?.0).ok()
    }
}

impl FromGiven for PathBuf {
    fn from_given(given: Given) -> Option<PathBuf> {
        Some(OsString::from_vec(Bytes::from_given(given)?.0).into())
    }
}

impl FromGiven for Names {
    fn from_given(given: Given) -> Option<Names> {
        match given {
            Given::Names(names) => Some(names),
            Given::List(list) if list.is_empty() => Some(Names::default()),
            _ => None,
        }
    }
}

impl<T: FromGiven> FromGiven for Option<T> {
    fn from_given(given: Given) -> Option<Option<T>> {
        match given {
            Given::None => Some(None),
            given => T::from_given(given).map(Some),
        }
    }
}

impl<T: FromGiven> FromGiven for Vec<T> {
    fn from_given(given: Given) -> Option<Vec<T>> {
        match given {
            Given::List(list) => list.into_iter().map(T::from_given).collect(),
            Given::Ints(numbers) => {
                numbers.into_iter().map(|number| T::from_given(Given::Int(number))).collect()
            }
            Given::Names(names) => {
                names.iter().map(|name| T::from_given(Given::Bytes(name.to_vec()))).collect()
            }
            _ => None,
        }
    }
}

/// Any value, for formats that inspect it themselves.
impl FromGiven for Given {
    fn from_given(given: Given) -> Option<Given> {
        Some(given)
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {
        $(impl<$($name: FromGiven),+> FromGiven for ($($name,)+) {
            fn from_given(given: Given) -> Option<Self> {
                let mut items = Vec::<Given>::from_given(given)?.into_iter();
                let made = ($($name::from_given(items.next()?)?,)+);
                items.next().is_none().then_some(made)
            }
        })+
    };
}
tuples! {
    A B C;
    A B C D E;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: Vec<(&str, Given)>) -> Options {
        Options(given.into_iter().map(|(name, given)| (name.to_string(), given)).collect())
    }

    #[test]
    fn urls_are_found_in_names_and_lists() {
        let mut names = Names::default();
        names.push(b"a/b");
        assert_eq!(options(vec![("files", Given::Names(Names::default()))]).first_url(), None);
        names.push(b"s3://bucket/key");
        let list = Given::List(vec![Given::Int(1), Given::Names(names)]);
        let given = options(vec![("root", Given::Bytes(b"/data".to_vec())), ("files", list)]);
        assert_eq!(given.first_url(), Some(("files", "s3://bucket/key")));
    }

    #[test]
    fn options_are_taken_by_name_and_type() {
        let mut names = Names::default();
        names.push(b"a");
        names.push(b"");
        names.push(b"bc");
        let mixed = vec![Given::Float(0.5), Given::Flag(true), Given::Ints(vec![1, 2])];
        let mut given = options(vec![
            ("names", Given::Names(names)),
            ("mixed", Given::List(mixed)),
            ("word", Given::Bytes(b"skip".to_vec())),
            ("odd", Given::Int(-1)),
        ]);
        let names: Vec<PathBuf> = given.take("names").unwrap();
        assert_eq!(names, ["a", "", "bc"].map(PathBuf::from));
        let mixed: (f64, bool, Vec<usize>) = given.take("mixed").unwrap();
        assert_eq!(mixed, (0.5, true, vec![1, 2]));
        assert_eq!(given.choice("word", &[("keep", 1), ("skip", 2)]).unwrap(), 2);
        assert!(given.take::<Option<bool>>("absent").unwrap().is_none());
        assert!(given.take::<bool>("absent").is_err());
        assert!(given.finish().is_err());
        assert!(given.take::<usize>("odd").is_err());
        assert!(given.finish().is_ok());
    }
}
