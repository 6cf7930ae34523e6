//! Maps operating system errors to causes: a fault of the file, or of the machine.

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

/// Errors about the file itself: it is missing, or is not a regular file. Any other error (no file
/// descriptors left, a server that is down, a failing disk) may be temporary and says nothing about
/// the sample, so it is no reason to skip the sample.
const FILE_ERRORS: &[i32] = &[
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

/// The cause of a failed system call.
pub fn io_fault(error: &Error) -> Cause {
    let problem = io_problem(error);
    match error.raw_os_error() {
        Some(code) if !FILE_ERRORS.contains(&code) => Cause::System { problem },
        _ => Cause::File { problem },
    }
}

/// The kind of an error of the system.
pub fn io_problem(error: &Error) -> Problem {
    let fault = match (error.raw_os_error(), error.kind()) {
        (_, ErrorKind::NotFound) => SystemFault::NotFound,
        (_, ErrorKind::PermissionDenied) => SystemFault::Permission,
        (Some(libc::EMFILE), _) => SystemFault::TooManyFiles,
        (Some(libc::ENFILE), _) => SystemFault::TooManyFilesOfAll,
        // Rust itself returns this error, without a code, only for names that contain NUL.
        (None, ErrorKind::InvalidInput) => SystemFault::NulInName,
        (code, _) => SystemFault::Other { code, text: error.to_string() },
    };
    fault.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_about_the_file_are_file_faults() {
        let is_file_fault =
            |code| matches!(io_fault(&Error::from_raw_os_error(code)), Cause::File { .. });
        assert!([libc::ENOENT, libc::ENOTDIR, libc::EISDIR].into_iter().all(is_file_fault));
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
        assert!(!machine.into_iter().any(is_file_fault));
    }

    #[test]
    fn a_name_with_a_nul_has_its_own_fault() {
        let error = std::fs::File::open("a\0b").unwrap_err();
        assert!(
            matches!(io_fault(&error), Cause::File { problem } if problem == SystemFault::NulInName.into())
        );
    }
}
