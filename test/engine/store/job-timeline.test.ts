import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { noteEvents, readEvents } from '../../../src/engine/store/job-timeline.ts';
import { getJob } from '../../../src/engine/store/job-views.ts';
import { insertJob } from '../../../src/engine/store/jobs.ts';
import type { SqliteStore } from '../../../src/engine/store/open-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { sqliteOf } from '../../support/sqlite-of.ts';

const START = 1_795_305_675_144;

function openFile(file: string): SqliteStore {
  const tenant = openTenant(file, { role: 'worker', identity: null, now: START });
  onTestFinished(() => tenant.close());
  return sqliteOf(tenant.store);
}

test('events come back in their order, with the times that they were noted at', () => {
  const store = openFile(path.join(tempFolder(), 'cairn.sqlite'));
  const id = crypto.randomUUID();
  store.write(() => insertJob(store, { id, memory: 1, step: 'encode', bulk: false, now: START }));
  const note = (sql: string, at: number) => store.write(() => store.prepare(`UPDATE jobs SET ${sql}`).run(at));
  note(noteEvents(['encoded']), START + 523);
  // The clock was set back meanwhile.
  note(noteEvents(['failed']), START - 7);
  note(noteEvents(['linked', 'done']), START + 5_000_000_000);
  expect(getJob(store, id).timeline).toEqual([
    { event: 'queued', at: START },
    { event: 'encoded', at: START + 523 },
    { event: 'failed', at: START - 7 },
    { event: 'linked', at: START + 5_000_000_000 },
    { event: 'done', at: START + 5_000_000_000 },
  ]);
  expect(store.db.prepare('SELECT timeline FROM jobs').pluck().get()).toBe('e523f-7l5000000000d');
  expect(readEvents('', START)).toEqual([{ event: 'queued', at: START }]);
});

test('of a timeline whose beginning was left out, events without a letter or a time are left out', () => {
  const queued = { event: 'queued', at: START };
  expect(readEvents('23df-7r', START)).toEqual([
    queued,
    { event: 'failed', at: START - 7 },
    { event: 'read', at: START - 7 },
  ]);
  expect(readEvents('', START)).toEqual([queued]);
});
