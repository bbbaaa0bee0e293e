import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../src/engine/store/open-store.ts';
import { withStore } from '../support/add-checker.ts';
import { databaseFile, spawnService, startServiceProcess } from '../support/running-service.ts';
import { seedMemories } from '../support/seed-store.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MEMORIES = 30_000;
const DAY_MS = 86_400_000;
const KILLS = 5;

test('killed in the middle of the decay job, the next run gives the numbers that an undisturbed one gives', async () => {
  const folder = tempFolder();
  const settings = { OM_EMBEDDINGS: 'none' };
  await (await startServiceProcess({ folder, settings })).end('SIGTERM');
  const createdAt = Date.now() - 100 * DAY_MS;
  const store = openStore(databaseFile(folder), { role: 'worker' });
  const trees = Array.from({ length: MEMORIES }, (_, number) => ({
    content: `Tree ${number}`,
    salience: 0.8,
    createdAt,
  }));
  await seedMemories(store, trees, createdAt);
  store.close();
  const anchors = readAnchors(folder);

  let halfway = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    resetCache(folder);
    const service = spawnService({ folder, settings });
    if (await untilDecaying(folder)) halfway++;
    await service.end('SIGKILL');
  }
  console.log(`${halfway} of ${KILLS} kills found the decay job halfway`);
  expect(halfway).toBeGreaterThan(0);

  resetCache(folder);
  const service = await startServiceProcess({ folder, settings });
  await service.logged('decay_done');
  await service.end('SIGTERM');
  expect(readAnchors(folder)).toEqual(anchors);
  withStore(folder, ({ db }) => {
    const rows = db
      .prepare('SELECT salience, decay_lambda AS lambda, salience_now AS now FROM memory_dynamics')
      .all() as {
      salience: number;
      lambda: number;
      now: number;
    }[];
    expect(rows).toHaveLength(MEMORIES);
    // A hundred days, and the seconds since.
    for (const { salience, lambda, now } of rows) expect(now).toBeCloseTo(salience * Math.exp(-lambda * 100), 4);
  });
});

/** Sets the cache to what no decay gives, and makes the job due. */
function resetCache(folder: string): void {
  withStore(folder, ({ db }) => {
    db.exec(`UPDATE memory_dynamics SET salience_now = 1`);
    db.exec(`INSERT OR REPLACE INTO store_info (key, value) VALUES ('last_decay', '1')`);
  });
}

function readAnchors(folder: string): unknown {
  return withStore(folder, ({ db }) =>
    db
      .prepare(
        `SELECT count(*), sum(salience), sum(salience_at), sum(decay_lambda), sum(strength), sum(strength_at) FROM memory_dynamics`,
      )
      .get(),
  );
}

/** Waits until the job has written its first slice. @returns whether there were others to come */
async function untilDecaying(folder: string): Promise<boolean> {
  const db = new Database(databaseFile(folder), { readonly: true });
  const first = db.prepare('SELECT salience_now < 1 FROM memory_dynamics ORDER BY seq LIMIT 1').pluck();
  const last = db.prepare('SELECT salience_now < 1 FROM memory_dynamics ORDER BY seq DESC LIMIT 1').pluck();
  try {
    while (first.get() !== 1) await new Promise((resolve) => setImmediate(resolve));
    return last.get() !== 1;
  } finally {
    db.close();
  }
}
