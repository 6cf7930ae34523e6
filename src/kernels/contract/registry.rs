//! All kernels by name, and the operators built from them.

use std::sync::{PoisonError, RwLock};

use super::adapters::{Entry, Work};
use super::kernel::Traits;
#[cfg(any(test, feature = "probes"))]
use super::probe;
use crate::kernels::FAMILIES;
use crate::readers;
use crate::value::Kind;

/// A family of operators: a module of `kernels`.
pub struct Family {
    pub kernels: &'static [&'static [Entry]],
    /// The kinds of problems that only its kernels report.
    pub problems: &'static [&'static [Kind]],
}

/// Kernels that belong to no family of operators.
const OTHERS: &[&[Entry]] = &[
    readers::TABLE,
    #[cfg(any(test, feature = "probes"))]
    probe::TABLE,
];

/// A kernel under its public name.
#[derive(Clone)]
pub struct Operator {
    pub name: &'static str,
    pub work: Work,
}

static OPERATORS: RwLock<Vec<Operator>> = RwLock::new(Vec::new());

fn entries() -> impl Iterator<Item = &'static Entry> {
    let families = FAMILIES.iter().flat_map(|family| family.kernels);
    families.chain(OTHERS).copied().flatten()
}

pub fn find(kernel: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == kernel)
}

/// Names of all kernels.
pub fn names() -> Vec<&'static str> {
    entries().map(|entry| entry.name).collect()
}

/// All kernels by name, with their traits.
pub fn traits() -> Vec<(&'static str, Traits)> {
    entries().map(|entry| (entry.name, (entry.cpu)().traits())).collect()
}

/// A static copy of the name; the same one for equal names.
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

/// Registers an operator under a number, so that calls are short.
pub fn register(name: &str, work: Work) -> usize {
    let mut operators = OPERATORS.write().unwrap_or_else(PoisonError::into_inner);
    operators.push(Operator { name: intern(name), work });
    operators.len() - 1
}

pub fn operator(number: usize) -> Option<Operator> {
    OPERATORS.read().unwrap_or_else(PoisonError::into_inner).get(number).cloned()
}
