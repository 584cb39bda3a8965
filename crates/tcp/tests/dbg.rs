mod pipe;
use pipe::{Draws, Fate, Pipe};
use sojourn_units::{MILLISECOND, SECOND, EPOCH};
#[test]
fn dbg() {
    let mut pipe = Pipe::simple("bbr profile linux-6", "10mbit", 10 * MILLISECOND, 50);
    let mut draws = Draws(7);
    pipe.paths[0].fate = Box::new(move |_, _| if draws.chance(0.02) { Fate::Drop } else { Fate::Deliver });
    pipe.log = Some(Box::new(|t, e, s| { let ts = s.timestamps(); println!("{:10.3} {} {:?} {:?}", (t - EPOCH) as f64/1e6, if e==0 {">"} else {"      <"}, s, ts.map(|t|(t.value,t.echo))) }));
    pipe.ends[0].write(2_000_000);
    let mut last = 0;
    pipe.drain(0);
    while pipe.now < EPOCH + 3*SECOND && !pipe.ends[0].is_finished() {
        pipe.step();
        let c = pipe.ends[0].counters().spurious;
        if c != last { last = c; println!("SPURIOUS"); }
    }
}
