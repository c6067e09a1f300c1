//! The algorithms, one file each. Every file opens with its equations and reference, and uses the names of
//! its paper.

pub mod album;
pub mod bc;
pub mod cac;
pub mod cgq;
pub mod deas;
pub mod dqc;
pub mod fawac;
pub mod fbrac;
pub mod fqe;
pub mod fql;
pub mod hinge_iql;
pub mod idql;
pub mod ifql;
pub mod ifql_album;
pub mod iql;
pub mod nfql;
pub mod qc_fql;
pub mod rebrac;
pub mod sac;
pub mod srpo;
