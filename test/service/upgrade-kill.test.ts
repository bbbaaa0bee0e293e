import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { createRandom } from '../../src/engine/random.ts';
import { openStore, type SqliteStore } from '../../src/engine/store/open-store.ts';
import { dumpTables } from '../support/engine-fixture.ts';
import { listFixtures, unpackFixture } from '../support/schema-fixture.ts';

const MAIN = path.resolve(import.meta.dirname, '../support/upgrade-main.ts');
const KILLS = 10;
/** Latest time of a kill after the upgrade began, ms: an upgrade of a fixture takes some ten. */
const LONGEST_MS = 25;

const countOf = (store: SqliteStore, table: string) => store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();

function versionOf(file: string): number {
  const db = new Database(file); // Writable, as a kill may leave a journal to be rolled back.
  const version = db.pragma('user_version', { simple: true }) as number;
  db.close();
  return version;
}

/** All that an upgraded file holds, except for what is made at random and hashes that follow from it. */
function upgraded(file: string): Record<string, unknown[]> {
  const store = openStore(file, { role: 'worker' });
  const tables = dumpTables(store, ['store_info', 'idempotency_keys', 'event_feed']);
  tables.counts = ['store_info', 'idempotency_keys', 'event_feed'].map((table) => countOf(store, table));
  expect(store.db.pragma('integrity_check', { simple: true })).toBe('ok');
  store.close();
  return tables;
}

test.each(listFixtures().slice(0, -1))(
  'kills during the upgrade of schema %i leave a file whose upgrade the next start ends, with nothing lost',
  async (version) => {
    const random = createRandom(version);
    const expected = upgraded(unpackFixture(version));
    for (let round = 0; round < KILLS; round++) {
      const file = unpackFixture(version);
      const child = spawn(process.execPath, [MAIN, file], { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = once(child, 'exit');
      await once(child.stdout, 'data');
      const afterMs = random() * LONGEST_MS;
      await pause(afterMs);
      child.kill('SIGKILL');
      await ended;
      const message = `schema ${version}, killed after ${afterMs.toFixed(1)} ms`;
      expect(versionOf(file), message).toBeGreaterThanOrEqual(version);
      expect(upgraded(file), message).toEqual(expected);
    }
  },
);
