//! The irc compiler as a library.
