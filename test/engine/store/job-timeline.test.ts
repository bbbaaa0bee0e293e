import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openTenant } from '../../../src/engine/tenant-file/open-tenant.ts';
import { noteEvents, readEvents } from '../../../src/engine/store/job-timeline.ts';
import { getJob, insertJob } from '../../../src/engine/store/jobs.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { makeOlderFile } from '../../support/older-file.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const START = 1_795_305_675_144;

function openFile(file: string): Store {
  const tenant = openTenant(file, { role: 'worker', identity: null, now: START });
  onTestFinished(() => tenant.close());
  return tenant.store;
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

const OLD_JOBS = [
  { seq: 3, state: 'done', step: 'done', kind: 'memory', events: ['encoded', 'linked', 'done'] },
  { seq: 4, state: 'queued', step: 'encode', kind: 'memory', events: [] },
  { seq: 7, state: 'queued', step: 'reason', kind: 'reflection', events: ['failed', 'requeued', 'retried'] },
  { seq: 8, state: 'dead', step: 'encode', kind: 'memory', events: ['crashed', 'crashed', 'crashed', 'dead'] },
  { seq: 9, state: 'done', step: 'done', kind: 'document', events: ['read', 'settled', 'done'] },
  { seq: 11, state: 'cancelled', step: 'reason', kind: 'contradictions', events: ['reasoned', 'cancelled'] },
];

test('jobs of a file from before keep their ids, times and numbers, and what refers to them', () => {
  const { db, file } = makeOlderFile('0009');
  const insert = db.prepare(
    `INSERT INTO jobs (seq, id, kind, memory, step, state, priority, attempts, crashes, suspect, run_at, lease_epoch, dispatches, error_code,
       error, created_at, updated_at, finished_at, timeline, document, trace_context)
     VALUES (:seq, :id, :kind, 5, :step, :state, 1, 2, 3, 4, 6, 7, 8, 'timeout', 'was late', 10, 11, 12, :timeline, 13, 'a trace')`,
  );
  const ids = OLD_JOBS.map(() => crypto.randomUUID());
  const timelines = OLD_JOBS.map(({ events }) => [
    { event: 'queued', at: 10 },
    ...events.map((event, place) => ({ event, at: 20 + place })),
  ]);
  for (const [place, { seq, kind, step, state }] of OLD_JOBS.entries()) {
    const timeline = timelines[place]!.map(({ event, at }) => JSON.stringify([event, at])).join(',');
    insert.run({ ...{ seq, kind, step, state, timeline }, id: ids[place] });
  }
  db.exec(`INSERT INTO jobs (seq, id, kind, step, state, run_at, created_at, updated_at, timeline)
    VALUES (40, 'gone', 'memory', 'encode', 'queued', 1, 1, 1, ''); DELETE FROM jobs WHERE seq = 40;
    INSERT INTO reflections (reflection_no, user_no, job, up_to) VALUES (1, 0, 7, NULL), (2, 0, NULL, 99)`);
  const before = db.prepare('SELECT * FROM jobs ORDER BY seq').all() as { timeline: string }[];
  const indexes = db.prepare(`SELECT name FROM sqlite_schema WHERE tbl_name = 'jobs' ORDER BY name`).pluck().all();
  db.close();

  const store = openFile(file);
  const after = store.db.prepare('SELECT * FROM jobs ORDER BY seq').all();
  expect(after).toEqual(
    before.map((row, place) => ({
      ...row,
      uuid: Buffer.from(ids[place]!.replaceAll('-', ''), 'hex'),
      timeline: expect.any(String) as string,
    })),
  );
  expect(ids.map((id) => getJob(store, id).timeline)).toEqual(timelines);
  expect(store.db.prepare('SELECT reflection_no, job, up_to FROM reflections').all()).toEqual([
    { reflection_no: 1, job: 7, up_to: null },
    { reflection_no: 2, job: null, up_to: 99 },
  ]);
  expect(
    store.db.prepare(`SELECT name FROM sqlite_schema WHERE tbl_name = 'jobs' ORDER BY name`).pluck().all(),
  ).toEqual(indexes);
  const job = { id: crypto.randomUUID(), memory: 1, step: 'encode', bulk: false, now: START } as const;
  expect(store.write(() => insertJob(store, job))).toBe(41);
  // A reflection still goes with its job.
  store.write(() => store.prepare('DELETE FROM jobs WHERE seq = 7').run());
  expect(store.db.prepare('SELECT reflection_no FROM reflections').pluck().all()).toEqual([2]);
});

test('the numbers of a ledger that is empty are not given again', () => {
  const { db, file } = makeOlderFile('0009');
  db.exec(`INSERT INTO jobs (seq, id, kind, step, state, run_at, created_at, updated_at, timeline)
    VALUES (40, 'gone', 'memory', 'encode', 'queued', 1, 1, 1, ''); DELETE FROM jobs`);
  db.close();
  const store = openFile(file);
  const job = { id: crypto.randomUUID(), memory: 1, step: 'encode', bulk: false, now: START } as const;
  expect(store.write(() => insertJob(store, job))).toBe(41);
});
