//! All kernels by name, and the operators that are made of them.

use std::sync::{PoisonError, RwLock};

use super::kernel::{Entry, Work};
use super::{
    cast, coordinates, elementwise, fill, generic, geometry, join, lookup, probe, random, reduce,
    regions, sequence, shape,
};

const TABLES: &[&[Entry]] = &[
    cast::TABLE,
    coordinates::TABLE,
    elementwise::TABLE,
    fill::TABLE,
    generic::TABLE,
    geometry::TABLE,
    join::TABLE,
    lookup::TABLE,
    probe::TABLE,
    random::TABLE,
    reduce::TABLE,
    regions::TABLE,
    sequence::TABLE,
    shape::TABLE,
    crate::readers::TABLE,
];

/// A kernel under the name that users know.
#[derive(Clone)]
pub struct Operator {
    pub name: &'static str,
    pub work: Work,
}

static OPERATORS: RwLock<Vec<Operator>> = RwLock::new(Vec::new());

pub fn find(kernel: &str) -> Option<&'static Entry> {
    TABLES.iter().copied().flatten().find(|entry| entry.name == kernel)
}

/// Names of all kernels.
pub fn names() -> Vec<&'static str> {
    TABLES.iter().copied().flatten().map(|entry| entry.name).collect()
}

/// A name that lives for ever; the same one each time.
pub fn intern(name: &str) -> &'static str {
    static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());
    let known = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
    if let Some(known) = known(&NAMES.read().unwrap_or_else(PoisonError::into_inner)) {
        return known;
    }
    let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
    known(&names).unwrap_or_else(|| {
        names.push(String::from(name).leak());
        names[names.len() - 1]
    })
}

/// Makes an operator known by a number, for calls to be short.
pub fn register(name: &str, work: Work) -> usize {
    let mut operators = OPERATORS.write().unwrap_or_else(PoisonError::into_inner);
    operators.push(Operator { name: intern(name), work });
    operators.len() - 1
}

pub fn operator(number: usize) -> Option<Operator> {
    OPERATORS.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
}
