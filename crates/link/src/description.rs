//! A link's description in words: rate, netem and queue.

use crate::netem::Netem;
use crate::params::Params;
use sojourn_queue::Device;
use sojourn_queue::cake::framing::Cells;
use sojourn_units::quantity::parse_rate;
use sojourn_units::quantity_error;
use sojourn_units::words::WordError;

/// Error: a part of a link's description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {error}")]
pub struct DescriptionError {
    /// The part: `rate`, `netem` or `queue`.
    pub part: &'static str,
    /// The fault, with its position in the part's text.
    #[source]
    pub error: Box<WordError>,
}

impl Params {
    /// Returns notices about a description that [`Params::parse`] reads: words without effect, and
    /// what they are taken to mean.
    pub fn warnings(rate: &str, netem: &str, queue: &str) -> Vec<String> {
        let device = Device { rate: parse_rate(rate).ok(), ..Device::default() };
        [Netem::warnings(netem), sojourn_queue::Params::warnings(queue, &device)].concat()
    }

    /// Returns a link with a rate such as `20mbit`, delay and impairments in netem's words, and a
    /// queue in `tc`'s words ([`Params::warnings`] has notices about them). An empty text has its
    /// default: a transmitter that is infinitely fast, a wire without delay, a `pfifo`. The other
    /// fields have their defaults.
    ///
    /// # Errors
    /// The part that is wrong, what is wrong in it, and its position.
    pub fn parse(rate: &str, netem: &str, queue: &str) -> Result<Self, DescriptionError> {
        let fail = |part| move |error| DescriptionError { part, error: Box::new(error) };
        let rate = (!rate.is_empty())
            .then(|| parse_rate(rate).map_err(|e| quantity_error(rate, &e, "a rate", "20mbit")))
            .transpose()
            .map_err(fail("rate"))?;
        let device = Device { rate, ..Device::default() };
        let queue = if queue.is_empty() { "pfifo" } else { queue };
        let queue = sojourn_queue::Params::parse(queue, &device).map_err(fail("queue"))?;
        let Netem { delay, impairments } = Netem::parse(netem).map_err(fail("netem"))?;
        let cells = Cells::None;
        Ok(Self { rate, trace: None, overhead: 0, cells, delay, impairments, queue })
    }
}
