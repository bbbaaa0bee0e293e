import { expect, test } from 'vitest';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';

/** Runs the schedules that are due. @returns the greatest number of rows that one commit changed */
async function mostRowsOfACommit({ maintenance, get }: TestEngine): Promise<number> {
  let most = 0;
  const open = () => {
    const tenant = maintenance.open();
    const { store } = tenant;
    const changed = () => get<number>('SELECT total_changes()');
    const write = (run: () => unknown) => {
      const before = changed();
      const result = store.write(run);
      most = Math.max(most, changed() - before);
      return result;
    };
    return { ...tenant, store: Object.create(store, { write: { value: write } }) as typeof store };
  };
  await runDueSchedules({ ...maintenance, open });
  return most;
}

test('commits of the upkeep that purge recalls with their candidates are small', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const { memoryNo } = await fixture.add({ content: 'the ferry leaves at noon' });
  const { db } = fixture.store;
  const recall = db.prepare(
    `INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes) VALUES (?, 0, '[]', '[]', '{}', 0)`,
  );
  const candidate = db.prepare(`INSERT INTO recall_candidates (recall_no, place, memory, data) VALUES (?, ?, ?, '')`);
  fixture.store.write(() => {
    for (let at = 0; at < 45; at++) {
      const { lastInsertRowid } = recall.run(`old ${at}`);
      for (let place = 0; place < 100; place++) candidate.run(lastInsertRowid, place, memoryNo);
    }
  });
  const most = await mostRowsOfACommit(fixture);
  expect(most).toBeGreaterThan(1_000);
  expect(most).toBeLessThan(1_100);
  expect(fixture.get('SELECT count(*) FROM recall_candidates')).toBe(0);
});

test('weak waypoints are pruned some hundred a commit', async () => {
  await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
  const memoryNos: number[] = [];
  for (let at = 0; at < 26; at++) memoryNos.push((await fixture.add({ content: `ferry ${at}` })).memoryNo);
  await runDueSchedules(fixture.maintenance);
  const waypoint = fixture.store.db.prepare(
    `INSERT INTO edges (src, dst, type, weight, automatic, created_at, updated_at) VALUES (?, ?, 'waypoint', 0.01, 0, 0, 0)`,
  );
  fixture.store.write(() => {
    for (const src of memoryNos) for (const dst of memoryNos) if (src !== dst) waypoint.run(src, dst);
  });
  fixture.clock.advanceDays(7);
  expect(await mostRowsOfACommit(fixture)).toBe(500);
  expect(fixture.get('SELECT count(*) FROM edges')).toBe(0);
});
