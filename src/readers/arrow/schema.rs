//! The columns of Arrow files, and which buffers of a record batch each one has.

use super::super::columns::{ColumnFault, Kind, MOST_DEPTH, listed};
use super::flatbuffers::Table;
use super::{ArrowFault, Result, broken};
use crate::value::DType;

/// How deep types may be nested.
const MOST_LEVELS: usize = 32;

/// A step from a row to the values of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A structure, whose fields have as many rows.
    Structure,
    /// A list; whether its offsets have 64 bits.
    List { large: bool },
    /// Lists of equal length.
    Array { length: usize },
}

/// What is at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// Values of so many bytes.
    Fixed(usize),
    /// A bit each.
    Bits,
    Bytes {
        large: bool,
    },
}

/// A column to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    /// Each step with the place of its first buffer.
    pub steps: Vec<(Step, Place)>,
    pub end: (End, Place),
}

/// The first buffer and the node of a field in record batches. Behind a field with a varying number
/// of buffers, places depend on the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub node: usize,
    pub buffer: usize,
    /// How many fields with buffers that vary in number are in front of it.
    pub variadic: usize,
}

/// A field, with the fields in it.
struct Field {
    name: String,
    kind: Type,
    place: Place,
    children: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Number { dtype: DType, bytes: usize },
    Bits,
    Bytes { large: bool },
    FixedBytes(usize),
    List { large: bool },
    Array { length: usize },
    Structure,
    Other(&'static str),
}

/// The wanted columns of a schema; without names, all that can be read.
pub fn columns(schema: Table<'_>, names: Option<&[String]>) -> Result<Vec<Column>> {
    if schema.short(0) == Some(1) {
        return Err(broken(ArrowFault::BigEndian));
    }
    let mut next = Place { node: 0, buffer: 0, variadic: 0 };
    let fields = fields(schema, 1, &mut next, 0)?;
    match names {
        Some(names) => names.iter().map(|name| find(&fields, name)).collect(),
        None => Ok(fields.iter().filter_map(|field| find(&fields, &field.name).ok()).collect()),
    }
}

fn fields(table: Table<'_>, number: usize, next: &mut Place, depth: usize) -> Result<Vec<Field>> {
    let Some(vector) = table.vector(number, 4) else { return Ok(vec![]) };
    if depth > MOST_LEVELS {
        return Err(broken(ArrowFault::Schema));
    }
    let mut found = Vec::new();
    for index in 0..vector.len {
        let table = vector.table(index).ok_or_else(|| broken(ArrowFault::Schema))?;
        found.push(field(table, next, depth)?);
        // Offsets may point to the same table again and again.
        if next.node > 1 << 20 {
            return Err(broken(ArrowFault::Schema));
        }
    }
    Ok(found)
}

fn field(table: Table<'_>, next: &mut Place, depth: usize) -> Result<Field> {
    let name = String::from_utf8_lossy(table.text(0).unwrap_or_default()).into_owned();
    let place = *next;
    next.node += 1;
    if table.table(4).is_some() {
        // Indices into a dictionary.
        next.buffer += 2;
        return Ok(Field { name, kind: Type::Other("a dictionary"), place, children: vec![] });
    }
    let code = table.byte(2).unwrap_or(0);
    let details = table.table(3);
    let (kind, buffers) = typed(code, details);
    next.buffer += buffers;
    if matches!(code, 23 | 24) {
        next.variadic += 1;
    }
    let children = fields(table, 5, next, depth + 1)?;
    Ok(Field { name, kind, place, children })
}

/// The type of a field, and how many buffers it has itself.
fn typed(code: u8, details: Option<Table<'_>>) -> (Type, usize) {
    let number = |dtype: DType| (Type::Number { dtype, bytes: dtype.size() }, 2);
    let int = |number| details.and_then(|table| table.int(number));
    let short = |number| details.and_then(|table| table.short(number));
    let size = |value: Option<i32>| usize::try_from(value.unwrap_or(0)).unwrap_or(0);
    match code {
        1 => (Type::Other("nulls"), 0),
        2 => {
            let signed = details.and_then(|table| table.byte(1)).unwrap_or(0) != 0;
            match (int(0).unwrap_or(0), signed) {
                (8, true) => number(DType::I8),
                (16, true) => number(DType::I16),
                (32, true) => number(DType::I32),
                (64, true) => number(DType::I64),
                (8, false) => number(DType::U8),
                (16, false) => number(DType::U16),
                (32, false) => number(DType::U32),
                (64, false) => number(DType::U64),
                _ => (Type::Other("integers of an unknown size"), 2),
            }
        }
        3 => match short(0).unwrap_or(0) {
            0 => number(DType::F16),
            1 => number(DType::F32),
            2 => number(DType::F64),
            _ => (Type::Other("floats of an unknown size"), 2),
        },
        4 | 5 => (Type::Bytes { large: false }, 3),
        6 => (Type::Bits, 2),
        7 => (Type::Other("decimals"), 2),
        // Days as 32 bits, or milliseconds.
        8 => number(if short(0) == Some(0) { DType::I32 } else { DType::I64 }),
        9 => number(if int(1).unwrap_or(32) == 64 { DType::I64 } else { DType::I32 }),
        10 | 18 => number(DType::I64),
        11 => (Type::Other("intervals"), 2),
        12 => (Type::List { large: false }, 2),
        13 => (Type::Structure, 1),
        14 => {
            let dense = short(0) == Some(1);
            (Type::Other("a union"), if dense { 2 } else { 1 })
        }
        15 => (Type::FixedBytes(size(int(0))), 2),
        16 => (Type::Array { length: size(int(0)) }, 1),
        17 => (Type::Other("a map"), 2),
        19 | 20 => (Type::Bytes { large: true }, 3),
        21 => (Type::List { large: true }, 2),
        22 => (Type::Other("runs"), 0),
        23 | 24 => (Type::Other("views"), 2),
        25 | 26 => (Type::Other("views of lists"), 3),
        _ => (Type::Other("an unknown type"), 0),
    }
}

/// A column by its name, or by names with dots between them.
fn find(fields: &[Field], name: &str) -> Result<Column> {
    let mut steps = Vec::new();
    let (mut among, mut rest) = (fields, name);
    let mut field = loop {
        let found = among.iter().find_map(|field| {
            let after = rest.strip_prefix(&*field.name)?;
            let rest = if after.is_empty() { after } else { after.strip_prefix('.')? };
            Some((field, rest))
        });
        let Some((field, after)) = found else {
            let known = listed(among.iter().map(|field| &*field.name));
            return Err(broken(ColumnFault::Missing { column: name.into(), known }));
        };
        if after.is_empty() {
            break field;
        }
        enter(field, &mut steps, name)?;
        (among, rest) = (&field.children, after);
    };
    let mut depth = steps.iter().filter(|(step, _)| *step != Step::Structure).count();
    let (end, number) = loop {
        match field.kind {
            Type::Number { dtype, bytes } => break (End::Fixed(bytes), Some(dtype)),
            Type::Bits => break (End::Bits, Some(DType::Bool)),
            Type::Bytes { large } => break (End::Bytes { large }, None),
            Type::FixedBytes(length) => break (End::Fixed(length), None),
            _ => {}
        }
        enter(field, &mut steps, name)?;
        depth += usize::from(field.kind != Type::Structure);
        let encoded =
            |child: &&Field| child.name == "bytes" && matches!(child.kind, Type::Bytes { .. });
        let next = match &field.children[..] {
            [one] => Some(one),
            all => all.iter().find(encoded),
        };
        field = match next {
            Some(next) => next,
            None => {
                let fields = listed(field.children.iter().map(|field| &*field.name));
                return Err(broken(ColumnFault::Fields { column: name.into(), fields }));
            }
        };
    };
    if depth > MOST_DEPTH {
        return Err(broken(ColumnFault::Deep { column: name.into(), depth }));
    }
    if depth > 0 && number.is_none() {
        return Err(broken(ColumnFault::Texts { column: name.into() }));
    }
    let kind = Kind { number, depth };
    Ok(Column { name: name.into(), kind, steps, end: (end, field.place) })
}

fn enter(field: &Field, steps: &mut Vec<(Step, Place)>, name: &str) -> Result<()> {
    let step = match field.kind {
        Type::Structure => Step::Structure,
        Type::List { large } => Step::List { large },
        Type::Array { length } => Step::Array { length },
        Type::Other(found) => {
            return Err(broken(ColumnFault::Type { column: name.into(), found: found.into() }));
        }
        _ => return Err(broken(ColumnFault::Missing { column: name.into(), known: "".into() })),
    };
    steps.push((step, field.place));
    Ok(())
}
