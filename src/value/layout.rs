//! The letters that name a sample's axes.

/// Letters of the axes, outermost first ("HWC"); empty when unset. Small enough to be `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    len: u8,
    letters: [u8; Layout::MAX],
}

impl Layout {
    pub const MAX: usize = 15;

    /// `None` when there are too many letters or one is not ASCII.
    pub fn new(letters: &str) -> Option<Layout> {
        if letters.len() > Layout::MAX || !letters.is_ascii() {
            return None;
        }
        let mut layout = Layout { len: letters.len() as u8, ..Layout::default() };
        layout.letters[..letters.len()].copy_from_slice(letters.as_bytes());
        Some(layout)
    }

    pub fn letters(&self) -> &[u8] {
        &self.letters[..self.len as usize]
    }

    pub fn as_str(&self) -> &str {
        // `new` accepts only ASCII.
        std::str::from_utf8(self.letters()).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// This layout with another axis in front. `None` when that is too many.
    pub fn with_first(&self, letter: u8) -> Option<Layout> {
        let len = self.letters().len();
        let mut layout = Layout { len: self.len + 1, ..Layout::default() };
        let (first, rest) = layout.letters.split_first_mut()?;
        *first = letter;
        rest.get_mut(..len)?.copy_from_slice(self.letters());
        Some(layout)
    }

    /// Index of the axis with this letter.
    pub fn find(&self, letter: u8) -> Option<usize> {
        self.letters().iter().position(|&l| l == letter)
    }
}

impl std::fmt::Debug for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}
