//! The applications. None of them imports another: each acts only through the world.

mod bulk;
mod datagrams;
mod responsiveness;
pub mod server;
pub mod store;
mod stream;
mod transfer;
mod web;

use crate::app::{App, Declared, Event, Report};
use crate::world::World;
use sojourn_measure::Imbalance;
use sojourn_plan::PlanError;

/// Declares the list of applications as an enum that is itself an application.
macro_rules! apps {
    ($($name:ident: $app:ty,)*) => {
        /// An application of any kind.
        pub enum AnyApp {
            $(#[doc = concat!("`", stringify!($app), "`.")] $name(Box<$app>),)*
        }

        impl App for AnyApp {
            fn try_new(
                declared: Declared,
                world: &mut World,
                id: u32,
            ) -> Result<Option<Self>, PlanError> {
                $(if let Some(app) = <$app>::try_new(declared, world, id)? {
                    return Ok(Some(Self::$name(Box::new(app))));
                })*
                Ok(None)
            }

            #[inline]
            fn on_timer(&mut self, world: &mut World, id: u32) {
                match self {
                    $(Self::$name(app) => app.on_timer(world, id),)*
                }
            }

            #[inline]
            fn on_event(&mut self, world: &mut World, id: u32, event: Event) {
                match self {
                    $(Self::$name(app) => app.on_event(world, id, event),)*
                }
            }

            fn restart(&mut self) {
                match self {
                    $(Self::$name(app) => app.restart(),)*
                }
            }

            fn audit(&self, world: &World, id: u32) -> Result<(), Imbalance> {
                match self {
                    $(Self::$name(app) => app.audit(world, id),)*
                }
            }

            fn work(&self) -> Option<(u64, u64)> {
                match self {
                    $(Self::$name(app) => app.work(),)*
                }
            }

            fn report(&self, world: &World, id: u32) -> Report {
                match self {
                    $(Self::$name(app) => app.report(world, id),)*
                }
            }
        }
    };
}

apps! {
    Bulk: bulk::Bulk,
    Datagrams: datagrams::Datagrams,
    Responsiveness: responsiveness::Responsiveness,
    Store: store::Store,
    Stream: stream::Stream,
    Transfer: transfer::Transfer,
    Web: web::Web,
    // The last place, because the event loop takes more instructions with it in the middle.
    Server: server::Server,
}
