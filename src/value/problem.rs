//! What is wrong, as data: a kind and its figures. Python has a sentence for each kind
//! (`penstock/_errors/sentences`).

use super::dtype::DType;

/// One thing that is wrong, created from a variant of an enum declared with [`problems!`].
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// The enum and its variant, such as "Frames.Count".
    pub kind: &'static str,
    /// The variant's fields by name, for the sentence.
    pub figures: Vec<(&'static str, Figure)>,
}

/// A field of a problem, as Python shows it.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    Int(i128),
    Float(f64),
    Text(String),
    Ints(Vec<i128>),
    Floats(Vec<f64>),
    /// A nested problem, such as that of one page of a file.
    Problem(Box<Problem>),
    Absent,
}

/// A kind of problem: its name and the names of its fields.
pub type Kind = (&'static str, &'static [&'static str]);

/// Declares kinds of problems as an enum. `From` turns a variant into a [`Problem`]; `KINDS` lets a
/// test check that Python has a sentence for each.
macro_rules! problems {
    ($(#[$doc:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident $({ $($field:ident: $type:ty),+ $(,)? })?),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        $vis enum $name { $($(#[$variant_doc])* $variant $({ $($field: $type),+ })?),+ }

        impl $name {
            pub const KINDS: &'static [$crate::value::Kind] = &[$((
                concat!(stringify!($name), ".", stringify!($variant)),
                &[$($(stringify!($field)),+)?],
            )),+];
        }

        impl From<$name> for $crate::value::Problem {
            fn from(problem: $name) -> $crate::value::Problem {
                match problem {
                    $($name::$variant $({ $($field),+ })? => $crate::value::Problem {
                        kind: concat!(stringify!($name), ".", stringify!($variant)),
                        figures: vec![$($((stringify!($field), $field.into())),+)?],
                    }),+
                }
            }
        }
    };
}
pub(crate) use problems;

macro_rules! integer_figures {
    ($($type:ty)*) => {
        $(impl From<$type> for Figure {
            fn from(number: $type) -> Figure {
                Figure::Int(number as i128)
            }
        }
        impl From<Vec<$type>> for Figure {
            fn from(numbers: Vec<$type>) -> Figure {
                Figure::Ints(numbers.into_iter().map(|number| number as i128).collect())
            }
        }
        impl From<&[$type]> for Figure {
            fn from(numbers: &[$type]) -> Figure {
                Figure::Ints(numbers.iter().map(|&number| number as i128).collect())
            }
        })*
    };
}
integer_figures!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

impl From<f32> for Figure {
    fn from(number: f32) -> Figure {
        Figure::Float(f64::from(number))
    }
}

impl From<f64> for Figure {
    fn from(number: f64) -> Figure {
        Figure::Float(number)
    }
}

impl From<Vec<f64>> for Figure {
    fn from(numbers: Vec<f64>) -> Figure {
        Figure::Floats(numbers)
    }
}

impl From<&str> for Figure {
    fn from(text: &str) -> Figure {
        Figure::Text(text.into())
    }
}

impl From<String> for Figure {
    fn from(text: String) -> Figure {
        Figure::Text(text)
    }
}

impl From<DType> for Figure {
    fn from(dtype: DType) -> Figure {
        Figure::Text(format!("{dtype:?}").to_lowercase())
    }
}

impl From<Problem> for Figure {
    fn from(problem: Problem) -> Figure {
        Figure::Problem(Box::new(problem))
    }
}

impl<T: Into<Figure>> From<Option<T>> for Figure {
    fn from(figure: Option<T>) -> Figure {
        figure.map_or(Figure::Absent, T::into)
    }
}

/// For Rust's tests and panics; users see Python's sentence.
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.kind, self.figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    problems! {
        enum Sample { Empty, Long { length: usize, limit: f64 } }
    }

    #[test]
    fn a_problem_has_its_kind_and_figures_by_name() {
        let problem = Problem::from(Sample::Long { length: 3, limit: 0.5 });
        assert_eq!(problem.kind, "Sample.Long");
        assert_eq!(problem.figures, [("length", 3usize.into()), ("limit", 0.5.into())]);
        assert_eq!(Problem::from(Sample::Empty).figures, []);
        assert_eq!(
            Sample::KINDS,
            [("Sample.Empty", &[][..]), ("Sample.Long", &["length", "limit"])]
        );
    }
}
