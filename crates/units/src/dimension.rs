//! Quantities whose dimension is given by name, for tables of parameters and Web pages.

use crate::errors::quantity_error;
use crate::quantity::{parse_packets, parse_probability, parse_rate, parse_size, parse_time};
use crate::words::WordError;

/// Dimension of a quantity, which determines its base unit and its text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Duration in nanoseconds.
    Time,
    /// Rate above zero, in bits per second.
    Rate,
    /// Size in bytes.
    Size,
    /// Number of packets.
    Packets,
    /// Probability from 0 to 1.
    Probability,
}

/// A quantity in its base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// Time in nanoseconds, rate in bits per second, size in bytes, or number of packets.
    Whole(u64),
    /// Probability from 0 to 1.
    Part(f64),
}

impl Dimension {
    /// Returns the dimension with this name; `None` for an unknown name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "time" => Self::Time,
            "rate" => Self::Rate,
            "size" => Self::Size,
            "packets" => Self::Packets,
            "probability" => Self::Probability,
            _ => return None,
        })
    }

    /// Parses a quantity of this dimension.
    ///
    /// # Errors
    /// If the text is not such a quantity. The message contains an example.
    pub fn read(self, text: &str) -> Result<Quantity, WordError> {
        let (read, what, example) = match self {
            Self::Time => (parse_time(text).map(Quantity::Whole), "a time", "5ms"),
            Self::Rate => {
                let rate = parse_rate(text).map(|rate| Quantity::Whole(rate.bits()));
                (rate, "a rate above zero", "10mbit")
            }
            Self::Size => (parse_size(text).map(Quantity::Whole), "a size", "30kb"),
            Self::Packets => {
                (parse_packets(text).map(Quantity::Whole), "a number of packets", "300p")
            }
            Self::Probability => {
                let probability = parse_probability(text).map(Quantity::Part);
                (probability, "a probability", "0.02 or 2%")
            }
        };
        read.map_err(|error| quantity_error(text, &error, what, example))
    }
}
