import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFilePoller, MAX_OPENINGS, type Look } from '../../../src/engine/dispatch/ledger-poller.ts';
import { systemClock } from '../../../src/engine/ports.ts';
import { claimJobs } from '../../../src/engine/store/job-claims.ts';
import { insertJob } from '../../../src/engine/store/jobs.ts';
import { openForLook, openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const MAX_OPEN = 8;

/** Files with empty ledgers, untouched for an hour, and a poller that has seen none of them yet. */
function openField(count: number) {
  const folder = tempFolder();
  const paths = Array.from({ length: count }, (_, number) => path.join(folder, `tenant-${number}.sqlite`));
  const empty = path.join(folder, 'empty.sqlite');
  openStore(empty, { role: 'worker', create: true }).close();
  for (const file of paths) {
    fs.copyFileSync(empty, file);
    settle(file);
  }
  const openings: string[] = [];
  const poller = createFilePoller({
    openMost: MAX_OPEN,
    leaseMs: 60_000,
    clock: systemClock,
    open(file) {
      openings.push(file);
      return openForLook(file);
    },
  });
  onTestFinished(() => poller.close());
  return { paths, poller, openings };
}

/** As if its last change was an hour ago. */
function settle(file: string): void {
  const anHourAgo = Date.now() / 1_000 - 3_600;
  for (const name of [file, `${file}-wal`]) if (fs.existsSync(name)) fs.utimesSync(name, anHourAgo, anHourAgo);
}

/** Another process writes to a file. */
function write(file: string, work: (store: Store) => void): void {
  const store = openStore(file, { role: 'worker', create: true });
  store.write(() => work(store));
  store.close();
}

const enqueue = (file: string) =>
  write(file, (store) =>
    insertJob(store, { id: randomUUID(), memory: 1, step: 'encode', bulk: false, now: Date.now() }),
  );

const seen = ({ statuses }: Look) => statuses.map((status) => status.path);

test('with 200 tenants and room for 8 files, only what changed is opened again, one file to a turn of the event loop', async () => {
  const { paths, poller, openings } = openField(200);
  let turn = 0;
  let isOver = false;
  const count = () => setImmediate(() => (turn++, isOver || count()));
  count();
  for (let isComplete = false; !isComplete;) {
    const before = openings.length;
    const startedIn = turn;
    ({ isComplete } = await poller.look(paths));
    expect(openings.length - before).toBeLessThanOrEqual(MAX_OPENINGS);
    expect(turn - startedIn).toBeGreaterThanOrEqual(openings.length - before);
  }
  isOver = true;
  expect(new Set(openings)).toEqual(new Set(paths));
  expect(openings.length).toBe(200);

  for (let look = 0; look < 50; look++) {
    expect(await poller.look(paths)).toEqual({ statuses: [], failures: [], isComplete: true });
  }
  expect(openings.length).toBe(200);

  enqueue(paths[137]!);
  expect(await poller.look(paths)).toMatchObject({
    statuses: [{ path: paths[137], interactive: ['encode'], bulk: [] }],
  });
  expect(openings.slice(200)).toEqual([paths[137]]);
});

test('what is left in a file is looked at each time, and no more once it has ended', async () => {
  const { paths, poller, openings } = openField(20);
  await poller.listUnfinished(paths);
  enqueue(paths[3]!);
  for (let look = 0; look < 5; look++) {
    settle(paths[3]!);
    expect(seen(await poller.look(paths))).toEqual([paths[3]]);
  }
  expect(await poller.listUnfinished(paths)).toEqual([paths[3]]);
  expect(openings.length).toBe(21);
  write(paths[3]!, (store) => store.prepare(`UPDATE jobs SET state = 'done', step = 'done', finished_at = 1`).run());
  settle(paths[3]!);
  expect(await poller.look(paths)).toMatchObject({ statuses: [{ isUnfinished: false }] });
  expect(seen(await poller.look(paths))).toEqual([]);
});

test('files with work beyond those that it may keep open all get their turn', async () => {
  const { paths, poller } = openField(3 * MAX_OPENINGS);
  for (const file of paths) {
    enqueue(file);
    settle(file);
  }
  await poller.listUnfinished(paths);
  const found = new Set<string>();
  for (let look = 0; look < 4; look++) for (const file of seen(await poller.look(paths))) found.add(file);
  expect(found).toEqual(new Set(paths));
});

test('a lease that ran out shows, and one that runs does not', async () => {
  const { paths, poller } = openField(1);
  enqueue(paths[0]!);
  const claim = (leaseMs: number) =>
    write(paths[0]!, (store) => {
      store.prepare(`UPDATE jobs SET state = 'queued'`).run();
      claimJobs(store, { step: 'encode', limit: 1, owner: 'a worker', leaseMs, now: Date.now() });
    });
  claim(60_000);
  expect((await poller.look(paths)).statuses).toMatchObject([
    { interactive: [], hasLapsed: false, isUnfinished: true },
  ]);
  claim(-1);
  expect((await poller.look(paths)).statuses).toMatchObject([{ interactive: [], hasLapsed: true, isUnfinished: true }]);
});

test('a tenant without a file has nothing, and gets none by being looked at', async () => {
  const { poller } = openField(0);
  const file = path.join(tempFolder(), 'never-used.sqlite');
  expect(await poller.look([file])).toEqual({ statuses: [{ path: file, ...NOTHING }], failures: [], isComplete: true });
  expect((await poller.look([file])).statuses).toEqual([]);
  expect(fs.existsSync(file)).toBe(false);
  enqueue(file);
  expect(seen(await poller.look([file]))).toEqual([file]);
});

test('a file that took the place of another is the one that is looked at', async () => {
  const { paths, poller } = openField(1);
  const [file] = paths as [string];
  enqueue(file);
  await poller.look(paths);
  for (const name of [file, `${file}-wal`, `${file}-shm`]) fs.rmSync(name, { force: true });
  write(file, () => {});
  expect((await poller.look(paths)).statuses).toMatchObject([{ interactive: [], isUnfinished: false }]);
});

test('a file that cannot be read is said to be so each time, and hides no other', async () => {
  const { paths, poller } = openField(3);
  fs.writeFileSync(paths[1]!, 'scribbled over '.repeat(1_000));
  enqueue(paths[2]!);
  for (let look = 0; look < 2; look++) {
    const { statuses, failures } = await poller.look(paths);
    expect(failures).toMatchObject([{ path: paths[1] }]);
    expect(statuses.map((status) => status.path)).toContain(paths[2]);
  }
});

test('more files that cannot be read than one call opens do not keep a list of unfinished ones from its end', async () => {
  const { paths, poller } = openField(2 * MAX_OPENINGS);
  for (const file of paths.slice(1)) fs.writeFileSync(file, 'scribbled over '.repeat(1_000));
  enqueue(paths[0]!);
  expect(await poller.listUnfinished(paths)).toEqual([paths[0]]);
});

const NOTHING = { interactive: [], bulk: [], hasLapsed: false, isUnfinished: false };
