import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { DAY_MS } from '../../src/engine/dynamics.ts';
import { createRandom } from '../../src/engine/random.ts';
import { readSectorCorrection } from '../../src/engine/store/sector-corrections.ts';
import { chooseSeed, withStore } from '../support/add-checker.ts';
import { openTestEngine, START } from '../support/engine-fixture.ts';
import { inForm } from '../support/fault-form.ts';
import { databaseFile } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SETS = ['first', 'second', 'third'];
const ITEMS = 12;
/** A process is killed within this time after it began. */
const MOMENT_MS = 700;
/** Statements of sectors for one that was learned from all of them: more than learning needs. */
const THINGS = 'mast keel rope buoy winch rudder cleat jib boom hatch oar anchor sail tiller hull deck stay'.split(' ');

test(`${inForm(20)} kills while sets are run by schedule and sectors are learned: each day's are made up for`, async () => {
  const seed = chooseSeed();
  const random = createRandom(seed);
  const folder = tempFolder();
  await fill(folder);
  const broken: number[] = [];
  const wanted = new Map(SETS.map((set) => [set, 0]));
  let correction: unknown;
  for (let life = 0; life <= inForm(20); life++) {
    // A day later, so that the claim of the life before has lapsed and all is due.
    const before = runsIn(folder);
    const now = START + (life + 2) * DAY_MS;
    if (life < inForm(20)) await runDue(folder, now, random() * MOMENT_MS);
    const killed = runsIn(folder);
    for (const set of SETS) expect(killed.get(set)! - before.get(set)!).toBeLessThanOrEqual(1);
    broken.push([...killed.values()].reduce((a, b) => a + b) - [...before.values()].reduce((a, b) => a + b));
    // Hours later the rest of that day is made up for, once.
    await runDue(folder, now + DAY_MS / 4);
    const after = runsIn(folder);
    const isWhole = broken.at(-1) === SETS.length;
    for (const set of SETS) wanted.set(set, after.get(set)! - killed.get(set)!);
    // A round whose end was noted is not run again; one that was killed before is, as a whole.
    expect(isWhole ? [0, 1] : [1]).toContain(wanted.get('first'));
    expect(new Set(wanted.values()).size).toBe(1);
    await runDue(folder, now + DAY_MS / 3);
    expect(runsIn(folder)).toEqual(after);
    const learned = withStore(folder, readSectorCorrection);
    correction ??= learned;
    expect(learned).toEqual(correction);
  }
  expect(correction).not.toBeNull();
  console.log(`seed ${seed}: sets that were run before each kill: ${broken.join(', ')} of ${SETS.length}`);
});

async function fill(folder: string): Promise<void> {
  await using fixture = await openTestEngine({ file: databaseFile(folder) });
  for (const thing of THINGS) {
    for (const boat of ['', 'On the ferry: ']) {
      const content = `${boat}Rule for the ${thing}: the ${thing} belongs to the crew of the watch.`;
      await fixture.add({ content, metadata: { sector: 'procedural' } });
    }
  }
  await fixture.drain();
  const items = THINGS.slice(0, ITEMS).map((thing) => ({ query: `Who has the ${thing}?`, expected: [thing] }));
  for (const name of SETS) await fixture.tenant.putEval({ name, guard: false, items });
}

/** Runs what is due at a time in a process, to its end or for so many ms. */
async function runDue(folder: string, now: number, ms?: number): Promise<void> {
  const child = fork(new URL('../support/schedules-main.ts', import.meta.url), {
    env: {
      PATH: process.env.PATH,
      OM_DB_PATH: databaseFile(folder),
      OM_VEC_DIM: '256',
      OM_EVAL_EVERY: '10h',
      CAIRN_NOW: String(now),
    },
    execArgv: [],
  });
  const exited = once(child, 'exit');
  await Promise.race([once(child, 'message'), exited]);
  if (ms === undefined) {
    expect(await exited).toEqual([0, null]);
    return;
  }
  await Promise.race([pause(ms), exited]);
  child.kill('SIGKILL');
  await exited;
}

/** Number of runs of each set. */
function runsIn(folder: string): ReadonlyMap<string, number> {
  return withStore(
    folder,
    (store) =>
      new Map(
        store.db
          .prepare('SELECT name, (SELECT count(*) FROM eval_runs r WHERE r.set_no = s.set_no) FROM eval_sets s')
          .raw()
          .all() as [string, number][],
      ),
  );
}
