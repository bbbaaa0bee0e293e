import { v7 as uuidv7 } from 'uuid';
import { expect, test } from 'vitest';
import { logRecalls } from '../../../src/engine/commands/recalls.ts';
import { appendRecall, type RecallToKeep } from '../../../src/engine/store/recalls.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { openTestEngine, START, type TestEngine } from '../../support/engine-fixture.ts';

test('an answer takes in the file about as many bytes as are counted against the bound of the log', async () => {
  await using fixture = await openTestEngine();
  const { store } = fixture;
  const { memoryNo } = await fixture.add({ content: 'The harbour ferry leaves.' });
  // As large as most candidates are: more than a quarter of a page, on which some layouts spill to another page.
  const candidate = { memoryNo, id: 'an id', data: JSON.stringify({ score: 'x'.repeat(1_100) }) };
  for (let n = 0; n < 40; n += 1) {
    store.write(() =>
      appendRecall(store, {
        recallId: `recall ${n}`,
        at: n,
        asked: { userIds: undefined, sessionIds: undefined },
        head: JSON.stringify({ question: 'x'.repeat(1_500) }),
        candidates: Array.from({ length: 13 }, () => candidate),
        supersededNos: [],
      }),
    );
  }
  const counted = fixture.get<number>('SELECT bytes FROM recall_total');
  const taken = fixture.get<number>(
    `SELECT sum(pgsize) FROM dbstat
     WHERE name IN (SELECT name FROM sqlite_schema WHERE tbl_name IN ('recalls', 'recall_candidates'))`,
  );
  expect(counted).toBeGreaterThan(40 * 13 * 1_100);
  expect(taken / counted).toBeLessThan(1.4);
});

test('the users and sessions that a question names are counted against the bound of the log', async () => {
  await using fixture = await openTestEngine();
  const names = Array.from({ length: 100 }, (_, no) => String(no).padStart(256, '港'));
  const asked = { userIds: names, sessionIds: names };
  logElsewhere(fixture, ...Array.from({ length: 10 }, (_, at) => ({ recallId: `recall ${at}`, at, asked })));
  const counted = fixture.get<number>('SELECT bytes FROM recall_total');
  const taken = fixture.get<number>(`SELECT sum(pgsize) FROM dbstat WHERE name = 'recalls'`);
  expect(taken).toBeGreaterThan(1_500_000);
  expect(taken / counted).toBeLessThan(1.1);
});

/** Logs questions as another process does that has answered them before. @returns what the log holds then */
function logElsewhere({ maintenance, store, clock }: TestEngine, ...asked: readonly Partial<RecallToKeep>[]) {
  const recalls = asked.map((one) => ({
    ...{ recallId: `recall ${String(one.at)} ${JSON.stringify(one.asked)}`, at: START, asked: {}, head: '{}' },
    ...{ candidates: [], supersededNos: [], ...one },
  }));
  store.write(() =>
    logRecalls(
      {
        ...maintenance,
        store,
        now: clock.now(),
        newId: uuidv7,
        indexes: new Map(),
        writtenBy: null,
        backlog: { atMost: 0 },
      },
      { recalls },
    ),
  );
  return store
    .prepare('SELECT users, sessions, asked_at AS at FROM recalls ORDER BY recall_no')
    .all() as readonly object[];
}

test('what was asked about a user before a delete is not logged after it, by whatever process', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const ana = { asked: { userIds: ['zoe', 'ana'] }, at: clock.now() };
  clock.advance(1);
  await tenant.deleteMemories({ userIds: ['ana'] });
  const later = { asked: { userIds: ['ana'] }, at: clock.now() + 1 };
  const other = { asked: { userIds: ['ben'], sessionIds: ['ana'] }, at: START };
  const none = { asked: {}, at: START };
  expect(logElsewhere(fixture, ana, later, other, none)).toEqual([
    { users: '["ana"]', sessions: '[]', at: later.at },
    { users: '["ben"]', sessions: '["ana"]', at: START },
    { users: '[]', sessions: '[]', at: START },
  ]);
  expect(fixture.get<string>(`SELECT value FROM store_info WHERE key = 'erased_questions'`)).not.toContain('ana');
  clock.advance(3_600_002);
  logElsewhere(fixture);
  expect(fixture.get(`SELECT count(*) FROM store_info WHERE key = 'erased_questions'`)).toBe(0);
});

test('a delete of sessions of a user leaves the questions about other sessions of the user', async () => {
  await using fixture = await openTestEngine();
  await fixture.tenant.deleteMemories({ userIds: ['ana'], sessionIds: ['trip'] });
  const asked = (userId: string, sessionId: string) => ({ asked: { userIds: [userId], sessionIds: [sessionId] } });
  expect(logElsewhere(fixture, asked('ana', 'trip'), asked('ana', 'work'), asked('ben', 'trip'))).toEqual([
    { users: '["ana"]', sessions: '["work"]', at: START },
    { users: '["ben"]', sessions: '["trip"]', at: START },
  ]);
});

test('many deletes leave a bounded note, beyond which no question of before is logged', async () => {
  await using fixture = await openTestEngine();
  const { tenant, clock } = fixture;
  const asked = { asked: { userIds: ['nobody named'] }, at: START };
  for (let n = 0; n < 6; n += 1) {
    await tenant.deleteMemories({ userIds: Array.from({ length: 100 }, (_, no) => `user ${n}.${no}`) });
    clock.advance(1);
  }
  expect(logElsewhere(fixture, asked, { ...asked, at: START + 1 })).toEqual([
    expect.objectContaining({ at: START + 1 }),
  ]);
  expect(logElsewhere(fixture, { asked: { userIds: ['user 5.99'] }, at: START + 5 })).toHaveLength(1);
});

test('a log that is far too large is trimmed in commits of some recalls, and by the upkeep', async () => {
  await using fixture = await openTestEngine({ settings: { OM_RECALL_MB: '1' } });
  fixture.store.db.exec(
    `WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 300)
     INSERT INTO recalls (recall_id, asked_at, users, sessions, head, bytes)
     SELECT 'trimmed ' || n, ${START}, '[]', '[]', '{}', 20000 FROM counted`,
  );
  const left = () => fixture.get<number>('SELECT count(*) FROM recalls');
  logElsewhere(fixture, { at: START });
  expect(left()).toBe(301 - 14);
  expect(fixture.get('SELECT min(recall_no) FROM recalls')).toBe(15);
  await runDueSchedules(fixture.maintenance);
  expect(left()).toBe(53);
  expect(fixture.get('SELECT bytes FROM recall_total')).toBeLessThanOrEqual(1024 * 1024);
});
