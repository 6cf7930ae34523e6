//! Columns of tables, as outputs of a reader: numbers, bytes, or arrays of numbers.

use super::source::Output;
use crate::value::{DType, problems};

problems! {
    /// Why a column can't be read.
    pub enum ColumnFault {
        Missing { column: String, known: String },
        Fields { column: String, fields: String },
        Type { column: String, found: String },
        Texts { column: String },
        Deep { column: String, depth: usize },
        Differs { column: String, file: String },
        Null { column: String },
        NullElement { column: String },
        Ragged { column: String },
    }
}

/// The most dimensions that lists of lists may have.
pub const MOST_DEPTH: usize = 6;

/// What a column has in each row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// `None` for texts and other bytes.
    pub number: Option<DType>,
    /// How many lists are around it.
    pub depth: usize,
}

impl Kind {
    pub fn output(self) -> Output {
        match (self.number, self.depth) {
            (None, _) => Output::new(DType::U8, 1),
            (Some(dtype), 0) => Output::uniform(dtype, 0),
            (Some(dtype), depth) => Output::new(dtype, depth),
        }
    }

    pub fn dtype(self) -> DType {
        self.number.unwrap_or(DType::U8)
    }
}

/// Names in a row, for a message.
pub fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 20;
    let mut shown: Vec<String> = names.take(MOST + 1).map(|name| format!("{name:?}")).collect();
    if shown.len() > MOST {
        shown.truncate(MOST);
        shown.push("...".into());
    }
    shown.join(", ")
}
