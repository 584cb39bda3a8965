//! Two enums over all congestion controls: one for the controls, one for their parameters.

use crate::control::{Control, ControlParams, EcnUse, Host};
use crate::external;
use crate::reno;
use crate::window::{Ack, Window};
use sojourn_units::declare::Parameters;
use sojourn_units::words::{Given, WordError};
use sojourn_units::{each, family};
use std::ops::{Deref, DerefMut};

controls!(family! (
    /// Parameters of a control; the variant names the control.
    #[derive(Clone, Debug, PartialEq)]
    #[serde(rename_all = "snake_case", tag = "name")]
    pub enum Params by ControlParams;

    /// A congestion control of any kind.
    ///
    /// It dereferences to a [`Control`]. The methods that are called for each segment are
    /// dispatched statically, which is faster.
    #[derive(Clone, Debug)]
    pub enum Congestion of Control;
));

impl From<external::Params> for Params {
    fn from(params: external::Params) -> Self {
        Self::External(params)
    }
}

impl Params {
    /// Returns the use of ECN that the control requests.
    pub fn ecn(&self) -> EcnUse {
        controls!(each! (Params, self, params => params.ecn()))
    }

    /// Returns whether the host's setting for HyStart applies.
    pub fn has_hystart(&self) -> bool {
        controls!(each! (Params, self, params => params.has_hystart()))
    }

    /// Sets the parameters that the words in `given` name; the others are unchanged.
    ///
    /// # Errors
    /// A value that is not allowed.
    pub fn set(&mut self, given: &Given) -> Result<(), WordError> {
        controls!(each! (Params, self, params => params.set(given)))
    }

    /// Returns the parameters to use on a connection, after the negotiation of ECN. `is_exact` is
    /// whether the peer echoes each mark. A control for L4S requires such an echo; without it Reno
    /// replaces the control.
    #[must_use]
    pub fn agreed(&self, is_exact: bool) -> &Self {
        const RENO: &Params = &Params::Reno(reno::Params {});
        if self.ecn() == EcnUse::L4s && !is_exact { RENO } else { self }
    }
}

impl Congestion {
    /// Returns a control of `host` with `params`; a control without slow start ignores its setting.
    #[expect(clippy::useless_conversion, reason = "`into` puts large controls into a box")]
    pub fn new(params: &Params, host: Host, window: &Window) -> Self {
        controls!(each! (Params to Congestion, params, (params, control) => {
            control(params.build(host, window).into())
        }))
    }

    /// See [`Control::on_ack`].
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        controls!(each! (Congestion, self, control => control.on_ack(window, ack)));
    }

    /// See [`Control::pacing_rate`].
    pub fn pacing_rate(&self) -> Option<u64> {
        controls!(each! (Congestion, self, control => control.pacing_rate()))
    }
}

impl Deref for Congestion {
    type Target = dyn Control;

    fn deref(&self) -> &Self::Target {
        controls!(each! (Congestion, self, control => control.seen()))
    }
}

impl DerefMut for Congestion {
    fn deref_mut(&mut self) -> &mut Self::Target {
        controls!(each! (Congestion, self, control => control.seen_mut()))
    }
}
