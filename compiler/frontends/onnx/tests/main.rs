//! Operators, graphs and libraries of ONNX and Common IR.

mod attention;
mod case;
mod docs;
mod elementwise;
mod growth;
mod import;
mod libraries;
mod microsoft;
mod microsoft_attention;
mod microsoft_errors;
mod microsoft_quantised;
mod ml;
mod models;
mod narrow_weights;
mod products;
mod quantised;
mod quantised_groups;
mod recurrent;
mod reductions;
mod rejections;
mod signals;
mod sizes;
mod spatial;
mod strings;
mod versions;
