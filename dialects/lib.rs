//! The irc dialects: definitions, import, export, verification.
