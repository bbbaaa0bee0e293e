/** A session log may have any number of changes with an id: no commit of a clear or an erasure changes all of them. */
import { expect, test } from 'vitest';
import { abandonLogs, changeLog, clearLog, eraseLogItems } from '../../../src/engine/commands/session-logs.ts';
import type { WriteContext } from '../../../src/engine/commands/write-context.ts';
import { expectNoOrphans, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { runCommand } from '../../support/run-command.ts';

const place = { userId: 'ana-operations', sessionId: 's' };
const change = { items: ['heron'], operationId: 'first' };

/** Makes a log of one item with 3,001 changes that have an id. */
function fillLog(fixture: TestEngine): void {
  runCommand(fixture, (context) => changeLog(context, { place, change }));
  fixture.store.db.exec(
    `WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 3000)
     INSERT INTO session_log_operations SELECT randomblob(32), o.log_no, o.content_hash, o.reply, o.created_at
     FROM session_log_operations o, counted`,
  );
}

/** Number of rows that a command changes in its commit. */
function rowsOf(fixture: TestEngine, command: (context: WriteContext) => unknown): number {
  const changes = () => fixture.store.db.prepare('SELECT total_changes()').pluck().get() as number;
  const before = changes();
  runCommand(fixture, command);
  return changes() - before;
}

/** Runs all commits of the erasure of logs. @returns the greatest number of rows that one of them changes */
function eraseAll(fixture: TestEngine): number {
  let isDone = false;
  let most = 0;
  while (!isDone) {
    const rows = rowsOf(fixture, (context) => ({ isDone } = eraseLogItems(context, { limit: 100 })));
    most = Math.max(most, rows);
  }
  return most;
}

const told = ({ get }: TestEngine) => get<number>('SELECT count(*) FROM session_log_operations WHERE reply NOT NULL');

test('a log is cleared in a commit of a few rows, and its changes are still recognised', async () => {
  await using fixture = await openTestEngine();
  fillLog(fixture);
  expect(rowsOf(fixture, (context) => clearLog(context, { place }))).toBeLessThan(10);
  expect(eraseAll(fixture)).toBeLessThan(10);
  expect(told(fixture)).toBe(3_001);
  expect(await fixture.tenant.changeLog(place, change)).toMatchObject({ total: 1, replayed: true });
  expect((await fixture.tenant.readLog(place, { limit: 9 })).total).toBe(0);
  expectNoOrphans(fixture.store);
});

test('the changes of an erased log are erased in commits of a thousand, also after the log was cleared', async () => {
  await using fixture = await openTestEngine();
  fillLog(fixture);
  await fixture.tenant.clearLog(place);
  const filter = { userIds: [place.userId] };
  expect(rowsOf(fixture, (context) => abandonLogs(context, { filter, limit: 100 }))).toBeLessThan(10);
  expect(eraseAll(fixture)).toBeLessThan(1_010);
  expect(told(fixture)).toBe(0);
  await expect(fixture.tenant.changeLog(place, change)).rejects.toMatchObject({ code: 'conflict' });
  expectNoOrphans(fixture.store);
});
