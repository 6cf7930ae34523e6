//! Errors of the operating system as causes: what is wrong with the file, or with the machine.

use std::io::{Error, ErrorKind};

use super::fault::Cause;
use super::problem::{Problem, problems};

problems! {
    /// Why the system can't open or read a file.
    pub enum SystemFault {
        NotFound,
        Permission,
        TooManyFiles,
        TooManyFilesOfAll,
        NulInName,
        Other { code: Option<i32>, text: String },
    }
}

/// What the system says of the file itself: it is missing, or it is something else. Everything
/// that is not listed (no descriptors left, a server that is away, a disk that fails) may be over
/// in a moment and says nothing about the sample, so that no sample must be left out for it.
const OF_THE_FILE: &[i32] = &[
    libc::ENOENT,
    libc::ENOTDIR,
    libc::EISDIR,
    libc::ELOOP,
    libc::ENAMETOOLONG,
    libc::EINVAL,
    libc::ENXIO,
    libc::ENODEV,
    libc::EFBIG,
    libc::EOVERFLOW,
    libc::EILSEQ,
];

/// The cause that an error of the system is.
pub fn io_fault(error: &Error) -> Cause {
    let problem = io_problem(error);
    match error.raw_os_error() {
        Some(code) if !OF_THE_FILE.contains(&code) => Cause::System { problem },
        _ => Cause::File { problem },
    }
}

/// What an error of the system says.
pub fn io_problem(error: &Error) -> Problem {
    let fault = match (error.raw_os_error(), error.kind()) {
        (_, ErrorKind::NotFound) => SystemFault::NotFound,
        (_, ErrorKind::PermissionDenied) => SystemFault::Permission,
        (Some(libc::EMFILE), _) => SystemFault::TooManyFiles,
        (Some(libc::ENFILE), _) => SystemFault::TooManyFilesOfAll,
        // Only Rust itself refuses a name, and only for this.
        (None, ErrorKind::InvalidInput) => SystemFault::NulInName,
        (code, _) => SystemFault::Other { code, text: error.to_string() },
    };
    fault.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wrong_with_the_file_is_its_fault() {
        let is_of_the_file =
            |code| matches!(io_fault(&Error::from_raw_os_error(code)), Cause::File { .. });
        assert!([libc::ENOENT, libc::ENOTDIR, libc::EISDIR].into_iter().all(is_of_the_file));
        let machine = [
            libc::EMFILE,
            libc::ENFILE,
            libc::ENOMEM,
            libc::EAGAIN,
            libc::EIO,
            libc::EACCES,
            libc::ESTALE,
            libc::ETIMEDOUT,
            libc::ENOTCONN,
            libc::EHOSTDOWN,
        ];
        assert!(!machine.into_iter().any(is_of_the_file));
    }

    #[test]
    fn a_name_with_a_nul_is_told() {
        let error = std::fs::File::open("a\0b").unwrap_err();
        assert!(
            matches!(io_fault(&error), Cause::File { problem } if problem == SystemFault::NulInName.into())
        );
    }
}
