/** A tenant's life on SQLite and on PostgreSQL at once: each statement must give the same answer on both. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { liveThrough } from '../conformance/store.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { openMirror, type Mirror } from '../support/mirrored-store.ts';
import { startPostgres } from '../support/postgres.ts';
import { notesAbout } from '../support/topics.ts';

const shared = vi.hoisted(() => ({ mirror: undefined as Mirror | undefined }));
vi.mock('../../src/engine/store/open-store.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('../../src/engine/store/open-store.ts')>();
  const openStore: typeof original.openStore = (file, options) => {
    const store = original.openStore(file, options);
    return shared.mirror?.mirror(store) ?? store;
  };
  return { ...original, openStore };
});

/** Statements whose answers differ, each with the reason; they need a form of their own. */
const KNOWN_DIFFERENCES: readonly (readonly [statement: RegExp, why: string])[] = [
  [
    /^SELECT wanted\.value AS entityNo, \(/,
    'a LIMIT takes what a subquery sorted, and PostgreSQL joins in another order',
  ],
  [/^SELECT \* FROM events WHERE event_no > \?/, 'each engine asks its own clock when a trigger notes an event'],
  [/^SELECT \* FROM document_generations/, 'one engine writes a number of JSON 0.0, the other 0'],
  [/avg\(salience \* exp/, 'the sum of fractions depends on the order of rows'],
];
/** Fewest statements of the life of a tenant that are equal; fewer would show that it, or PostgreSQL, lost a part. */
const LEAST_EQUAL = 475;
/** Most statements that may differ and have no reason above: new ones, while nothing leads to PostgreSQL. */
const MAX_UNKNOWN = 5;
/** What PostgreSQL says of a table of a migration that its schema does not follow yet; `postgres-store` tells which. */
const NO_SUCH_TABLE = /42P01/;

const server = await startPostgres();
describe.skipIf(server === undefined)('a tenant on both engines', () => {
  beforeAll(() => {
    shared.mirror = openMirror(server!.url);
  });
  afterAll(() => {
    shared.mirror?.close();
    server?.stop();
  });

  test('statements give the same answers', async () => {
    const mirror = shared.mirror!;
    await using fixture = await openTestEngine({ settings: { OM_EVENTS: 'true' } });
    await liveThrough(fixture);
    const ran = [...mirror.statements].filter(([, { runs }]) => runs > 0);
    const different = ran.filter(([, { difference }]) => difference !== undefined);
    const equal = ran.length - different.length;
    console.log(
      `${equal} of ${ran.length} statements gave the same answers on PostgreSQL; ` +
        `${mirror.sqliteOnly.size} more run on SQLite alone`,
    );
    const isKnown = (sql: string) => KNOWN_DIFFERENCES.some(([pattern]) => pattern.test(sql));
    const unknown = different.filter(([sql, { difference }]) => !isKnown(sql) && !NO_SUCH_TABLE.test(difference!));
    for (const [sql, { difference }] of unknown) console.warn(`${sql}\n  ${difference}`);
    expect(equal).toBeGreaterThanOrEqual(LEAST_EQUAL);
    expect(unknown.length).toBeLessThanOrEqual(MAX_UNKNOWN);
  });

  test('statements of the upkeep of enough memories for fits give the same answers', async () => {
    const mirror = shared.mirror!;
    await using fixture = await openTestEngine();
    for (const { content } of notesAbout('garden', 60)) await fixture.add({ content, userId: 'ana' });
    await fixture.drain();
    const before = new Map([...mirror.statements].map(([sql, { runs }]) => [sql, runs]));
    expect(await runDueSchedules(fixture.maintenance)).toContain('calibrate');
    fixture.clock.advanceDays(8);
    await runDueSchedules(fixture.maintenance);
    const ran = [...mirror.statements].filter(([sql, { runs }]) => runs > (before.get(sql) ?? 0));
    expect(ran.length).toBeGreaterThan(20);
    for (const [sql, { difference }] of ran) expect([sql, difference]).toEqual([sql, undefined]);
  });
});
