// Prints the packets of a template behind several queues as JSON: node films.mjs FOLDER REQUEST
//
// FOLDER has the files of a live page. REQUEST is an object: `id` of the scenario, `state` with changes, `queues`, and
// the time `until` in ns. For each queue: the times of arrival and of leaving in ns, the group, and the packets dropped.
import { createRequire } from "node:module";
import { gunzipSync } from "node:zlib";
import { changed, edits } from "../../python/sojourn/play/scripts/changes.mjs";
import { Film } from "../../python/sojourn/play/scripts/film.mjs";

const [, , folder, request] = process.argv;
const { id, state, queues, until } = JSON.parse(request);
const load = createRequire(import.meta.url);
load(`${folder}/module.js`);
load(`${folder}/catalogue.js`);
const packed = Buffer.from(globalThis.SOJOURN_MODULE, "base64");
const engine = await load(`${folder}/engine.js`).Engine.load(gunzipSync(packed));
const entry = globalThis.SOJOURN_CATALOGUE.scenarios[id];
const films = queues.map((queue) => {
  const plan = engine.edit(entry.plan, edits(entry, changed(entry, state), queue));
  const flows = plan.groups.flatMap(({ count }, number) => Array(count).fill(number));
  const film = new Film((direction) => flows[direction >> 1]);
  engine.open(plan, 1);
  engine.log(entry.bottleneck.links);
  for (let now = 0; now < until; now += 1e9) film.add(engine.advance(Math.min(until, now + 1e9)));
  const { offered, left, group, drops } = film;
  return { offered, left, group, drops };
});
process.stdout.write(JSON.stringify(films));
