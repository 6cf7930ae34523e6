//! The footer of a Parquet file: its columns, and where their data is.

use super::super::columns::{ColumnFault, Kind, MOST_DEPTH, listed};
use super::super::ranges::Opened;
use super::super::unpack::Packing;
use super::thrift::{Parsed, STRUCT, Thrift, Unparsed};
use super::{ParquetFault, Result, broken};
use crate::value::{DType, zeroed};

/// Largest footer that is read. (One with a million column chunks has about 100 MB.)
const LARGEST_FOOTER: u64 = 512 << 20;

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Physical {
    Boolean,
    /// Numbers, or bytes of fixed length.
    Fixed(usize),
    Bytes,
}

/// A column to read.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// What the user calls it.
    pub name: String,
    pub kind: Kind,
    pub physical: Physical,
    /// Its place among the columns of a row group.
    pub place: usize,
    pub most_repetition: u32,
    pub most_definition: u32,
    /// For each list around it, the definition level from which on it has elements.
    pub elements_from: Vec<u32>,
}

/// A column of a row group.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub start: u64,
    pub length: u64,
    /// Values, of which those that are null or in empty lists are some.
    pub values: u64,
    pub packing: Packing,
}

#[derive(Clone, Debug)]
pub struct RowGroup {
    pub rows: usize,
    /// Of the wanted columns, in their order.
    pub chunks: Vec<Chunk>,
}

#[derive(Default)]
pub struct Footer {
    pub leaves: Vec<Leaf>,
    pub groups: Vec<RowGroup>,
}

#[derive(Clone, Default)]
struct Node {
    name: String,
    physical: Option<i64>,
    length: u64,
    repetition: i64,
    children: u64,
    converted: Option<i64>,
    logical: Logical,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Logical {
    #[default]
    None,
    Integer {
        bits: i8,
        signed: bool,
    },
    Half,
    Decimal,
    Other,
}

/// Reads the footer. Without names, all columns that can be read are wanted.
pub fn read_footer(file: &Opened, names: Option<&[String]>) -> Result<Footer> {
    let bytes = footer_bytes(file)?;
    let mut nodes = Vec::new();
    let mut groups = Vec::new();
    let mut thrift = Thrift::new(&bytes);
    let parsed = thrift.fields(|thrift, number, _| {
        match number {
            2 => nodes = thrift.list(node)?,
            4 => groups = thrift.list(row_group)?,
            _ => return Ok(false),
        }
        Ok(true)
    });
    parsed.map_err(Unparsed::cause)?;
    let tree = Tree::new(&nodes)?;
    let leaves = match names {
        Some(names) => names.iter().map(|name| tree.find(name)).collect::<Result<Vec<_>>>()?,
        None => tree.all(),
    };
    let data_end = file.size.saturating_sub(8);
    let mut checked = Vec::new();
    for RawGroup { rows, columns } in groups {
        let rows = usize::try_from(rows).map_err(|_| broken(ParquetFault::Thrift))?;
        let mut chunks = Vec::with_capacity(leaves.len());
        for leaf in &leaves {
            let Some(column) = columns.get(leaf.place) else {
                return Err(broken(ParquetFault::Columns));
            };
            chunks.push(column.chunk(leaf, rows, data_end)?);
        }
        checked.push(RowGroup { rows, chunks });
    }
    Ok(Footer { leaves, groups: checked })
}

fn footer_bytes(file: &Opened) -> Result<Vec<u8>> {
    if file.size < 12 {
        return Err(broken(ParquetFault::TooShort { bytes: file.size }));
    }
    let mut tail = [0; 8];
    file.read(file.size - 8, &mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err(broken(ParquetFault::Encrypted)),
        _ => return Err(broken(ParquetFault::Magic)),
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if length > (file.size - 12).min(LARGEST_FOOTER) {
        return Err(broken(ParquetFault::Footer { length, size: file.size }));
    }
    let mut bytes = zeroed(length as usize)?;
    file.read(file.size - 8 - length, &mut bytes)?;
    Ok(bytes)
}

fn node(thrift: &mut Thrift<'_>) -> Parsed<Node> {
    let mut node = Node::default();
    thrift.fields(|thrift, number, _| {
        match number {
            1 => node.physical = Some(thrift.integer()?),
            2 => node.length = thrift.size()?,
            3 => node.repetition = thrift.integer()?,
            4 => node.name = thrift.text()?,
            5 => node.children = thrift.size()?,
            6 => node.converted = Some(thrift.integer()?),
            10 => node.logical = logical(thrift)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(node)
}

fn logical(thrift: &mut Thrift<'_>) -> Parsed<Logical> {
    let mut found = Logical::None;
    thrift.fields(|thrift, number, kind| {
        found = match number {
            5 => Logical::Decimal,
            15 => Logical::Half,
            10 if kind == STRUCT => {
                let (mut bits, mut signed) = (0, false);
                thrift.fields(|thrift, number, kind| {
                    match number {
                        1 => bits = thrift.small()?,
                        2 => signed = Thrift::truth(kind),
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                found = Logical::Integer { bits, signed };
                return Ok(true);
            }
            _ => Logical::Other,
        };
        Ok(false)
    })?;
    Ok(found)
}

#[derive(Clone)]
struct RawGroup {
    rows: u64,
    columns: Vec<RawChunk>,
}

#[derive(Clone, Default)]
struct RawChunk {
    elsewhere: bool,
    encrypted: bool,
    codec: i64,
    values: u64,
    length: u64,
    data: u64,
    dictionary: Option<u64>,
}

fn row_group(thrift: &mut Thrift<'_>) -> Parsed<RawGroup> {
    let mut group = RawGroup { rows: 0, columns: vec![] };
    thrift.fields(|thrift, number, _| {
        match number {
            1 => group.columns = thrift.list(raw_chunk)?,
            3 => group.rows = thrift.size()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(group)
}

fn raw_chunk(thrift: &mut Thrift<'_>) -> Parsed<RawChunk> {
    let mut chunk = RawChunk::default();
    thrift.fields(|thrift, number, _| {
        match number {
            1 => chunk.elsewhere = !thrift.bytes()?.is_empty(),
            3 => thrift.fields(|thrift, number, _| {
                match number {
                    4 => chunk.codec = thrift.integer()?,
                    5 => chunk.values = thrift.size()?,
                    7 => chunk.length = thrift.size()?,
                    9 => chunk.data = thrift.size()?,
                    11 => chunk.dictionary = Some(thrift.size()?),
                    _ => return Ok(false),
                }
                Ok(true)
            })?,
            8 | 9 => {
                chunk.encrypted = true;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(chunk)
}

impl RawChunk {
    fn chunk(&self, leaf: &Leaf, rows: usize, data_end: u64) -> Result<Chunk> {
        if self.encrypted {
            return Err(broken(ParquetFault::Encrypted));
        }
        if self.elsewhere {
            return Err(broken(ParquetFault::Elsewhere));
        }
        let packing = match self.codec {
            0 => Packing::None,
            1 => Packing::Snappy,
            2 => Packing::Gzip,
            6 => Packing::Zstd,
            7 => Packing::Lz4,
            codec => {
                let name = match codec {
                    3 => "LZO",
                    4 => "Brotli",
                    5 => "the old framing of LZ4",
                    _ => "an unknown codec",
                };
                return Err(broken(ParquetFault::Codec { column: leaf.name.clone(), name }));
            }
        };
        // Some writers set it to 0 if there is no dictionary.
        let dictionary = self.dictionary.filter(|&place| place > 0).unwrap_or(self.data);
        let start = self.data.min(dictionary);
        let fits = start.checked_add(self.length).is_some_and(|end| end <= data_end);
        let flat = leaf.most_repetition == 0;
        if !fits || (flat && self.values != rows as u64) {
            return Err(broken(ParquetFault::Chunk { column: leaf.name.clone() }));
        }
        Ok(Chunk { start, length: self.length, values: self.values, packing })
    }
}

/// The columns by name. Nodes are listed with each one in front of its children.
struct Tree<'a> {
    nodes: &'a [Node],
    /// The end of each node's descendants.
    ends: Vec<usize>,
    /// How many columns come before each node.
    places: Vec<usize>,
}

impl<'a> Tree<'a> {
    fn new(nodes: &'a [Node]) -> Result<Tree<'a>> {
        let mut ends = vec![0; nodes.len()];
        // Nodes whose children are not complete, and how many are missing.
        let mut open: Vec<(usize, u64)> = Vec::new();
        let mut places = Vec::with_capacity(nodes.len());
        let mut columns = 0;
        for (number, node) in nodes.iter().enumerate() {
            if number > 0 {
                match open.last_mut() {
                    Some((_, missing)) => *missing -= 1,
                    None => return Err(broken(ParquetFault::Schema)),
                }
            }
            places.push(columns);
            columns += usize::from(node.physical.is_some());
            if node.physical.is_none() || number == 0 {
                open.push((number, node.children));
            } else {
                ends[number] = number + 1;
            }
            while let Some(&(parent, 0)) = open.last() {
                ends[parent] = number + 1;
                open.pop();
            }
        }
        match open.is_empty() && !nodes.is_empty() && nodes[0].physical.is_none() {
            true => Ok(Tree { nodes, ends, places }),
            false => Err(broken(ParquetFault::Schema)),
        }
    }

    fn children(&self, parent: usize) -> impl Iterator<Item = usize> {
        let (mut next, end) = (parent + 1, self.ends[parent]);
        std::iter::from_fn(move || {
            let found = (next < end).then_some(next)?;
            next = self.ends[found];
            Some(found)
        })
    }

    fn names(&self, parent: usize) -> impl Iterator<Item = &'a str> {
        self.children(parent).map(|child| &*self.nodes[child].name)
    }

    /// All columns that can be read.
    fn all(&self) -> Vec<Leaf> {
        self.names(0).filter_map(|name| self.find(name).ok()).collect()
    }

    /// A column by its name, or by names with dots between them.
    fn find(&self, name: &str) -> Result<Leaf> {
        let mut path = Vec::new();
        let mut rest = name;
        let mut parent = 0;
        while !rest.is_empty() {
            let mut children = self.children(parent);
            let found = children.find_map(|child| {
                let after = rest.strip_prefix(&*self.nodes[child].name)?;
                let rest = if after.is_empty() { after } else { after.strip_prefix('.')? };
                Some((child, rest))
            });
            let Some((child, after)) = found else {
                let known = listed(self.names(parent));
                return Err(broken(ColumnFault::Missing { column: name.into(), known }));
            };
            path.push(child);
            (parent, rest) = (child, after);
        }
        if path.is_empty() {
            let known = listed(self.names(0));
            return Err(broken(ColumnFault::Missing { column: name.into(), known }));
        }
        // Down to the values: lists are groups with one child each.
        while self.nodes[parent].physical.is_none() {
            let children: Vec<usize> = self.children(parent).collect();
            let encoded = |child: &&usize| {
                self.nodes[**child].name == "bytes" && self.nodes[**child].physical == Some(6)
            };
            let next = match children[..] {
                [one] => Some(one),
                _ => children.iter().find(encoded).copied(),
            };
            let Some(next) = next else {
                let fields = listed(self.names(parent));
                return Err(broken(ColumnFault::Fields { column: name.into(), fields }));
            };
            path.push(next);
            parent = next;
        }
        self.leaf(name, &path)
    }

    fn leaf(&self, name: &str, path: &[usize]) -> Result<Leaf> {
        let (mut most_repetition, mut most_definition) = (0, 0);
        let mut elements_from = Vec::new();
        for &place in path {
            match self.nodes[place].repetition {
                0 => {}
                1 => most_definition += 1,
                _ => {
                    most_definition += 1;
                    most_repetition += 1;
                    elements_from.push(most_definition);
                }
            }
        }
        let node = &self.nodes[*path.last().unwrap_or(&0)];
        let (physical, number) = typed(name, node)?;
        let depth = elements_from.len();
        if depth > MOST_DEPTH {
            return Err(broken(ColumnFault::Deep { column: name.into(), depth }));
        }
        if depth > 0 && number.is_none() {
            return Err(broken(ColumnFault::Texts { column: name.into() }));
        }
        Ok(Leaf {
            name: name.into(),
            kind: Kind { number, depth },
            physical,
            place: self.places[*path.last().unwrap_or(&0)],
            most_repetition,
            most_definition,
            elements_from,
        })
    }
}

/// How values of a column are stored, and which numbers they are.
fn typed(name: &str, node: &Node) -> Result<(Physical, Option<DType>)> {
    let refuse =
        |found: &str| Err(broken(ColumnFault::Type { column: name.into(), found: found.into() }));
    // The older way to say it: 5 is a decimal, 11 to 14 are unsigned, 15 to 18 signed integers.
    if node.logical == Logical::Decimal || node.converted == Some(5) {
        return refuse("decimals");
    }
    let integer = match (node.logical, node.converted) {
        (Logical::Integer { bits, signed }, _) => Some((bits, signed)),
        (_, Some(code @ 11..=14)) => Some((8 << (code - 11), false)),
        (_, Some(code @ 15..=18)) => Some((8 << (code - 15), true)),
        _ => None,
    };
    Ok(match node.physical {
        Some(0) => (Physical::Boolean, Some(DType::Bool)),
        Some(1) => {
            let dtype = match integer {
                Some((8, true)) => DType::I8,
                Some((16, true)) => DType::I16,
                Some((8, false)) => DType::U8,
                Some((16, false)) => DType::U16,
                Some((32, false)) => DType::U32,
                _ => DType::I32,
            };
            (Physical::Fixed(4), Some(dtype))
        }
        Some(2) => {
            let unsigned = matches!(integer, Some((_, false)));
            (Physical::Fixed(8), Some(if unsigned { DType::U64 } else { DType::I64 }))
        }
        Some(3) => return refuse("timestamps of 96 bits"),
        Some(4) => (Physical::Fixed(4), Some(DType::F32)),
        Some(5) => (Physical::Fixed(8), Some(DType::F64)),
        Some(6) => (Physical::Bytes, None),
        Some(7) => match (node.length, node.logical) {
            (2, Logical::Half) => (Physical::Fixed(2), Some(DType::F16)),
            (length @ 1..=0x7FFF_FFFF, _) => (Physical::Fixed(length as usize), None),
            _ => return Err(broken(ParquetFault::Schema)),
        },
        _ => return Err(broken(ParquetFault::Schema)),
    })
}
