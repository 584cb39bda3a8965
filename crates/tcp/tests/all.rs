//! The tests of this crate in one program: it is linked once, and long tests run at the same time as short ones.

mod behaviour;
mod pipe;
mod properties;
mod response;
mod scripts;
mod transfer;
