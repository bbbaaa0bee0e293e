import fs from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { createTenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** What of a file, and of the files beside it, is mapped and resident (kB), as Linux tells it. */
function residentKb(file: string): number {
  const mappings = fs.readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m);
  return mappings
    .filter((mapping) => mapping.includes(file))
    .reduce((sum, mapping) => sum + Number(/^Rss:\s+(\d+)/m.exec(mapping)![1]), 0);
}

test.runIf(process.platform === 'linux')(
  'a large file is mapped while nobody else commits, and its pages are let go of now and then',
  () => {
    const file = path.join(tempFolder(), 'cairn.sqlite');
    const { store: other } = openTenant(file, { role: 'worker', identity: null, now: 0 });
    onTestFinished(() => other.close());
    other.write(() => other.prepare(`INSERT INTO store_info VALUES ('much', ?)`).run('x'.repeat(1_000_000)));
    sqliteOf(other).db.pragma('wal_checkpoint(TRUNCATE)');
    const pool = createTenantPool(4, () => openTenant(file, { role: 'reader', identity: null, now: 0 }));
    onTestFinished(() => pool.close());
    const { store } = pool.get(file);
    const mappedKbAfterReading = () => {
      sqliteOf(store).db.pragma('shrink_memory');
      expect(store.prepare(`SELECT value FROM store_info WHERE key = 'much'`).pluck().get()).toHaveLength(1_000_000);
      return residentKb(file);
    };

    vi.advanceTimersByTime(60_000);
    expect(mappedKbAfterReading()).toBeLessThan(100);
    // Beyond what the database says it holds, until the next checkpoint.
    fs.truncateSync(file, 600_000_000);
    vi.advanceTimersByTime(60_000);
    expect(mappedKbAfterReading()).toBeGreaterThan(900);
    vi.advanceTimersByTime(5_000);
    expect(residentKb(file)).toBeLessThan(100);
    expect(mappedKbAfterReading()).toBeGreaterThan(900);

    other.write(() => other.prepare(`INSERT INTO store_info VALUES ('more', '')`).run());
    sqliteOf(other).db.pragma('wal_checkpoint(TRUNCATE)');
    fs.truncateSync(file, 600_000_000);
    vi.advanceTimersByTime(1_000);
    expect(mappedKbAfterReading()).toBeLessThan(100);
    vi.advanceTimersByTime(5_000);
    expect(mappedKbAfterReading()).toBeGreaterThan(900);
  },
);

test('a file that is being read stays mapped, and nobody is told', () => {
  const file = path.join(tempFolder(), 'cairn.sqlite');
  const pool = createTenantPool(4, () => openTenant(file, { role: 'worker', identity: null, now: 0 }));
  onTestFinished(() => pool.close());
  const { store } = pool.get(file);
  const rows = sqliteOf(store).db.prepare('SELECT value FROM json_each(?)').pluck().iterate('[1, 2, 3]');
  expect(rows.next().value).toBe(1);
  vi.advanceTimersByTime(60_000);
  expect([...rows]).toEqual([2, 3]);
});
