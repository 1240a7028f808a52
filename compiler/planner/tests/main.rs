//! Planners and their cost model.

mod ark_planner;
mod cost;
mod quality;
mod rules;
mod sound;
mod support;
mod targets;
mod vectors;
