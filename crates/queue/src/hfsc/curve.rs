//! Service curves of two straight pieces, with the kernel's arithmetic.

use super::params::Curve;
use crate::speed::TICK;
use sojourn_units::SECOND;

/// Number of ticks of 64 ns per second.
const TICKS: u64 = SECOND / TICK;

/// A time that never comes; also the inverse of a slope of 0.
pub const NEVER: u64 = u64::MAX;

/// A service curve in the kernel's units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Internal {
    /// Slope of the first piece, in bytes per tick times 2^24.
    pub sm1: u64,
    /// Inverse of `sm1`, in ticks per byte times 2^14; [`NEVER`] for a slope of 0.
    pub ism1: u64,
    /// Length of the first piece, in ticks.
    pub dx: u64,
    /// Height of the first piece, in bytes.
    pub dy: u64,
    /// Slope of the second piece, in bytes per tick times 2^24.
    pub sm2: u64,
    /// Inverse of `sm2`, in ticks per byte times 2^14; [`NEVER`] for a slope of 0.
    pub ism2: u64,
}

/// Returns the bytes served in `x` ticks at a slope.
fn y(x: u64, slope: u64) -> u64 {
    (x >> 24).wrapping_mul(slope).wrapping_add((x & 0xff_ffff).wrapping_mul(slope) >> 24)
}

/// Returns the ticks in which `y` bytes are served; `inverse` is the inverse of the slope.
fn x(y: u64, inverse: u64) -> u64 {
    match (y, inverse) {
        (0, _) => 0,
        (_, NEVER) => NEVER,
        _ => (y >> 14).wrapping_mul(inverse).wrapping_add((y & 0x3fff).wrapping_mul(inverse) >> 14),
    }
}

impl Internal {
    /// Converts a curve to the kernel's units.
    pub fn new(curve: &Curve) -> Self {
        let slope = |bytes: u64| ((u128::from(bytes) << 24).div_ceil(TICKS.into())) as u64;
        let inverse = |bytes: u64| match bytes {
            0 => NEVER,
            bytes => (TICKS << 14).div_ceil(bytes),
        };
        let dx = (u64::from(curve.d) * TICKS).div_ceil(1_000_000);
        let sm1 = slope(curve.m1);
        Self {
            sm1,
            ism1: inverse(curve.m1),
            dx,
            dy: y(dx, sm1),
            sm2: slope(curve.m2),
            ism2: inverse(curve.m2),
        }
    }

    /// Returns whether the second piece is at least as steep as the first.
    pub fn is_convex(&self) -> bool {
        self.sm1 <= self.sm2
    }
}

/// A service curve with an origin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running {
    /// Origin: `x` is a time in ticks, `y` a number of bytes.
    x: u64,
    y: u64,
    /// Pieces of the curve.
    curve: Internal,
}

impl Running {
    /// Returns a curve with its origin at (x, y).
    pub fn new(curve: Internal, x: u64, y: u64) -> Self {
        Self { x, y, curve }
    }

    /// Returns the curve of eligible times: for a convex curve the second piece only, else the
    /// whole curve.
    pub fn eligible(mut self, curve: &Internal) -> Self {
        if curve.is_convex() {
            (self.curve.dx, self.curve.dy) = (0, 0);
        }
        self
    }

    /// Returns the time at which the curve reaches `at` bytes.
    pub fn when(&self, at: u64) -> u64 {
        let Self { curve, .. } = self;
        if at < self.y {
            self.x
        } else if at <= self.y.wrapping_add(curve.dy) {
            let more =
                if curve.dy == 0 { curve.dx } else { x(at.wrapping_sub(self.y), curve.ism1) };
            self.x.wrapping_add(more)
        } else {
            let above = at.wrapping_sub(self.y).wrapping_sub(curve.dy);
            self.x.wrapping_add(curve.dx).wrapping_add(x(above, curve.ism2))
        }
    }

    /// Returns the bytes of the curve at the time `at`.
    fn reaches(&self, at: u64) -> u64 {
        let Self { curve, .. } = self;
        if at <= self.x {
            self.y
        } else if at <= self.x.wrapping_add(curve.dx) {
            self.y.wrapping_add(y(at.wrapping_sub(self.x), curve.sm1))
        } else {
            let after = at.wrapping_sub(self.x).wrapping_sub(curve.dx);
            self.y.wrapping_add(curve.dy).wrapping_add(y(after, curve.sm2))
        }
    }

    /// Becomes the minimum of itself and of `curve` with its origin at (x, y_now), as far as two
    /// pieces can represent it.
    pub fn lower(&mut self, curve: &Internal, x: u64, y_now: u64) {
        let reached = self.reaches(x);
        if curve.is_convex() {
            if reached >= y_now {
                (self.x, self.y) = (x, y_now);
            }
            return;
        }
        if reached <= y_now {
            return;
        }
        if self.reaches(x.wrapping_add(curve.dx)) >= y_now.wrapping_add(curve.dy) {
            (self.x, self.y) = (x, y_now);
            (self.curve.dx, self.curve.dy) = (curve.dx, curve.dy);
            return;
        }
        // The curves cross within the first piece of the new one.
        let mut dx = (reached.wrapping_sub(y_now) << 24) / (curve.sm1 - curve.sm2);
        let first = self.x.wrapping_add(self.curve.dx);
        if first > x {
            dx = dx.wrapping_add(first.wrapping_sub(x));
        }
        (self.x, self.y) = (x, y_now);
        (self.curve.dx, self.curve.dy) = (dx, y(dx, curve.sm1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from recordings of the kernel.
    #[test]
    fn curves_are_the_kernels() {
        let curve = |m1: u64, d, m2: u64| Internal::new(&Curve { m1: m1 / 8, d, m2: m2 / 8 });
        let sc = curve(4_000_000, 10_000, 1_000_000);
        assert_eq!((sc.sm1, sc.ism1, sc.dx, sc.dy), (536_871, 512_000, 156_250, 5000));
        assert_eq!((sc.sm2, sc.ism2), (134_218, 2_048_000));
        let line = curve(0, 0, 8_000_000);
        assert_eq!((line.sm1, line.ism1, line.dx, line.dy), (0, NEVER, 0, 0));
        assert_eq!((line.sm2, line.ism2), (1_073_742, 256_000));
        assert!(line.is_convex() && !sc.is_convex());
    }

    #[test]
    fn a_curve_is_reached_when_it_says() {
        let running =
            Running::new(Internal::new(&Curve { m1: 500_000, d: 10_000, m2: 125_000 }), 9, 7);
        assert_eq!((running.when(0), running.when(7)), (9, 9));
        for at in [8u64, 1000, 5006, 5007, 5008, 100_000] {
            let x = running.when(at);
            assert!(
                running.reaches(x + 64) >= at && running.reaches(x.max(9 + 128) - 128) <= at,
                "{at}"
            );
        }
    }
}
