//! Building blocks shared by several algorithms: critics, flows, diffusion, policy heads.

pub mod categorical;
pub mod critic;
pub mod diffusion;
pub mod flow;
pub mod head;
pub mod times;
