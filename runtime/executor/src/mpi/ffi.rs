//! Safe wrappers of the shim's functions: the only foreign calls for MPI.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::Error;

unsafe extern "C" {
    fn irc_mpi_start(rank: *mut c_int, size: *mut c_int) -> c_int;
    fn irc_mpi_is_started() -> c_int;
    fn irc_mpi_end() -> c_int;
    fn irc_mpi_abort(code: c_int);
    fn irc_mpi_text(error: c_int, text: *mut c_char);
    fn irc_mpi_text_capacity() -> c_int;
    fn irc_mpi_gather_lengths(own: c_int, all: *mut c_int) -> c_int;
    fn irc_mpi_gather(
        own: *const c_void,
        length: c_int,
        all: *mut c_void,
        lengths: *const c_int,
        places: *const c_int,
    ) -> c_int;
    fn irc_mpi_send(
        bytes: *const c_void,
        length: c_int,
        to: c_int,
        request: *mut *mut c_void,
    ) -> c_int;
    fn irc_mpi_is_done(request: *mut c_void, done: *mut c_int) -> c_int;
    fn irc_mpi_probe(found: *mut c_int, from: *mut c_int, length: *mut c_int) -> c_int;
    fn irc_mpi_receive(bytes: *mut c_void, length: c_int, from: c_int) -> c_int;
}

fn check(error: c_int, what: &str) -> Result<(), Error> {
    if error == 0 {
        return Ok(());
    }
    // Safety: the buffer has the capacity that MPI requires, and MPI terminates the text with a zero.
    let text = unsafe {
        let mut text = vec![0 as c_char; irc_mpi_text_capacity().max(0) as usize + 1];
        irc_mpi_text(error, text.as_mut_ptr());
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Err(Error::Transport(format!("MPI cannot {what}: {text}")))
}

fn int(value: usize, what: &str) -> Result<c_int, Error> {
    let reason = || format!("{what} is {value}: more than MPI counts to");
    c_int::try_from(value).map_err(|_| Error::Transport(reason()))
}

/// Starts MPI; returns the rank of this process and the number of ranks. Only once per process.
pub(super) fn start() -> Result<(i64, i64), Error> {
    // Safety: has no arguments.
    if unsafe { irc_mpi_is_started() } != 0 {
        return Err(Error::Transport("MPI was started before in this process".into()));
    }
    let (mut rank, mut size) = (0, 0);
    // Safety: both locations outlive the call.
    check(unsafe { irc_mpi_start(&mut rank, &mut size) }, "start")?;
    Ok((rank.into(), size.into()))
}

/// Ends MPI; waits for the other ranks to do so.
pub(super) fn end() {
    // Safety: called once, when the last user of MPI is dropped.
    unsafe { irc_mpi_end() };
}

/// Terminates the processes of all ranks.
pub(super) fn abort(code: i32) -> ! {
    // Safety: does not return.
    unsafe { irc_mpi_abort(code) };
    std::process::abort()
}

/// Gathers the bytes of every rank.
pub(super) fn gather(own: &[u8], size: usize) -> Result<Vec<Vec<u8>>, Error> {
    let length = int(own.len(), "the length of what ranks tell each other")?;
    let mut lengths = vec![0; size];
    // Safety: there is an element for each rank.
    check(unsafe { irc_mpi_gather_lengths(length, lengths.as_mut_ptr()) }, "gather")?;
    let (mut places, mut total) = (vec![], 0);
    for &length in &lengths {
        places.push(int(total, "the length of what ranks tell each other")?);
        total += length.max(0) as usize;
    }
    let mut all = vec![0u8; total];
    let from = own.as_ptr().cast();
    // Safety: `all` has space for the sum of all lengths.
    let error = unsafe {
        irc_mpi_gather(from, length, all.as_mut_ptr().cast(), lengths.as_ptr(), places.as_ptr())
    };
    check(error, "gather")?;
    let mut rest = &all[..];
    Ok(lengths
        .iter()
        .map(|&length| rest.split_off(..length.max(0) as usize).unwrap_or_default().to_vec())
        .collect())
}

/// Bytes being sent, which stay allocated until sending is done.
pub(super) struct SendRequest {
    request: *mut c_void,
    _bytes: Vec<u8>,
}

// Safety: a request belongs to the process, not to a thread; only one thread at a time calls MPI.
unsafe impl Send for SendRequest {}

impl SendRequest {
    /// Starts sending to a rank.
    pub(super) fn start(bytes: Vec<u8>, to: i64) -> Result<Self, Error> {
        let length = int(bytes.len(), "the length of a message")?;
        let mut request = std::ptr::null_mut();
        // Safety: the bytes are not moved until the request is done.
        let error =
            unsafe { irc_mpi_send(bytes.as_ptr().cast(), length, to as c_int, &mut request) };
        check(error, "send")?;
        Ok(Self { request, _bytes: bytes })
    }

    /// Whether the bytes have been sent; must not be called again after that.
    pub(super) fn is_done(&self) -> Result<bool, Error> {
        let mut done = 0;
        // Safety: the request was made by `start` and is not done yet.
        check(unsafe { irc_mpi_is_done(self.request, &mut done) }, "send")?;
        Ok(done != 0)
    }
}

/// The next message that has arrived, with its sender.
pub(super) fn receive() -> Result<Option<(i64, Vec<u8>)>, Error> {
    let (mut found, mut from, mut length) = (0, 0, 0);
    // Safety: all locations outlive the call.
    check(unsafe { irc_mpi_probe(&mut found, &mut from, &mut length) }, "look for messages")?;
    if found == 0 {
        return Ok(None);
    }
    let mut bytes = vec![0u8; length.max(0) as usize];
    // Safety: there is space for the message that was found, and no other thread receives it.
    check(unsafe { irc_mpi_receive(bytes.as_mut_ptr().cast(), length, from) }, "receive")?;
    Ok(Some((from.into(), bytes)))
}
