//! Shell scripts, which are evaluated without executing anything.
//!
//! The syntax is that of POSIX.1-2024, Shell Command Language, with extensions of bash that scripts
//! for `tc` use: `[[ ]]`, `(( ))`, `for ((;;))`, `function`, `+=`, `&>`, arrays. Assignments,
//! functions, conditions, loops and the output of simple builtins have their effect. A command of
//! another program is assumed to succeed without effect; its output is unknown.

mod arithmetic;
mod builtins;
mod evaluate;
mod expand;
mod parse;
mod pattern;
mod syntax;
mod test;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use evaluate::{Files, Host, Run, Shell, WHICH_IS, looks_like_tc};
pub(crate) use parse::{Script, parse};
