//! Archives in the Model Library Format: reading, checks, writing, clients.

mod archive;
mod clients;
mod codes;
mod corpus;
mod mutations;
mod support;
mod versions;
