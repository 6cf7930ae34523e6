//! What a thread has made recently, such as filters: batches repeat the same settings.

use std::cell::RefCell;
use std::rc::Rc;

use crate::kernels::Result;

/// The most elements that are kept, over all entries.
const MOST_ELEMENTS: usize = 1 << 21;
const MOST_ENTRIES: usize = 64;

pub struct Recent<K, V>(RefCell<Vec<Entry<K, V>>>);

struct Entry<K, V> {
    key: K,
    made: Rc<V>,
    elements: usize,
}

impl<K: PartialEq, V> Recent<K, V> {
    pub const fn new() -> Recent<K, V> {
        Recent(RefCell::new(Vec::new()))
    }

    /// What `make` makes from a key, or has made before. `elements` is roughly its size.
    pub fn get(
        &self,
        key: K,
        elements: usize,
        make: impl FnOnce(&K) -> Result<V>,
    ) -> Result<Rc<V>> {
        let mut entries = self.0.borrow_mut();
        if let Some(place) = entries.iter().position(|entry| entry.key == key) {
            entries[..=place].rotate_right(1);
            return Ok(entries[0].made.clone());
        }
        let made = Rc::new(make(&key)?);
        if elements <= MOST_ELEMENTS {
            entries.insert(0, Entry { key, made: made.clone(), elements });
            let mut total = 0;
            let kept = entries.iter().take(MOST_ENTRIES).take_while(|entry| {
                total += entry.elements;
                total <= MOST_ELEMENTS
            });
            let kept = kept.count();
            entries.truncate(kept);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_made_once_until_others_take_their_place() {
        let recent = Recent::new();
        let mut made = 0;
        let mut get = |key: usize, elements: usize| {
            let mut new = false;
            recent
                .get(key, elements, |&key| {
                    new = true;
                    Ok(key)
                })
                .map(|value| assert_eq!(*value, key))
                .unwrap();
            made += usize::from(new);
            new
        };
        assert!(get(1, 10) && !get(1, 10) && get(2, 10) && !get(1, 10));
        assert!(get(3, MOST_ELEMENTS) && !get(3, MOST_ELEMENTS) && get(1, 10));
        assert!(get(4, MOST_ELEMENTS + 1) && get(4, MOST_ELEMENTS + 1));
        for key in 10..10 + MOST_ENTRIES {
            get(key, 1);
        }
        assert!(get(1, 10) && !get(9 + MOST_ENTRIES, 1));
    }
}
