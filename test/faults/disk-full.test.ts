import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import {
  checkAdds,
  chooseSeed,
  createAddClient,
  describeReport,
  expectFinished,
  expectSound,
} from '../support/add-checker.ts';
import { databaseFile, startServiceProcess } from '../support/running-service.ts';
import { fillDisk, mountSmallDisk, unmount } from '../support/small-disk.ts';
import { openTestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { tempFolder } from '../support/temp-folder.ts';

const KEPT_FREE_BYTES = 1024 * 1024;

test('on a full disk adds are refused, reads go on, nothing is damaged, and space is all it needs to go on', async (context) => {
  const folder = mountSmallDisk();
  if (folder === undefined) {
    console.warn('a small disk cannot be mounted here: the full disk is not tested');
    return context.skip();
  }
  const service = await startServiceProcess({ folder });
  onTestFinished(async () => {
    await service.end('SIGKILL');
    unmount(folder);
  });
  const history = path.join(tempFolder(), 'history.jsonl');
  const seed = chooseSeed();
  const client = createAddClient({ history, seed, concurrency: 16, service: async () => service });
  await client.add(300);
  await service.idle();
  const ballast = path.join(folder, 'ballast');
  fillDisk(ballast, KEPT_FREE_BYTES);
  const adding = client.add(1_500);
  const full = await client.untilAnswered(507);
  expect(full.body).toMatchObject({ code: 'storage_full' });

  expect((await service.request('GET', '/health')).status).toBe(200);
  expect((await service.request('GET', '/ready')).status).toBe(200);
  const list = await service.request('GET', '/memory/all?l=1');
  expect(list.status).toBe(200);
  const found = await service.request('POST', '/memory/query', { body: { query: 'the old harbour', min_score: 0 } });
  expect(found.body.matches.length).toBeGreaterThan(0);
  // A delete needs room in the log as an add does: it may be refused, but for that reason only.
  const deleted = await service.request('DELETE', '/memory/00000000-0000-7000-8000-000000000000');
  expect([404, 507]).toContain(deleted.status);
  const reader = new Database(databaseFile(folder), { readonly: true });
  expect(reader.pragma('integrity_check', { simple: true })).toBe('ok');
  reader.close();

  fs.rmSync(ballast);
  await adding;
  const counts = await service.idle();
  const report = await checkAdds(service, history);
  console.log(`seed ${seed}: ${describeReport(report)}; statuses ${JSON.stringify([...client.statuses])}`);
  expectSound(report);
  expect(report).toMatchObject({ acknowledged: 1_800, recovered: 0 });
  expect(counts).toMatchObject({ done: 1_800, dead: 0 });
  expect(await service.end('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(expectFinished(folder)).toBe(1_800);
});

test('documents leave room on a small disk, wait while there is none, and can be deleted when there is nothing left', async (context) => {
  const MB = 1024 * 1024;
  const folder = mountSmallDisk();
  if (folder === undefined) {
    console.warn('a small disk cannot be mounted here: documents on a full disk are not tested');
    return context.skip();
  }
  const fixture = await openTestEngine({ file: path.join(folder, 'cairn.sqlite') });
  onTestFinished(async () => {
    await fixture.close();
    unmount(folder);
  });
  const { tenant } = fixture;
  const { blocks, bsize } = fs.statfsSync(folder);
  const reserve = (blocks * bsize) / 8;
  const ballast = path.join(folder, 'ballast');
  const text = (name: string) => `# ${name}\n\n${`The ${name} is written down here.\n\n`.repeat(50_000)}`;
  const first = await tenant.addDocument(newDocument(await upload(tenant, text('heron'))));
  const second = await tenant.addDocument(newDocument(await upload(tenant, text('egret'))));

  // Neither more is taken in, nor what waits is read: what is left is for everything else.
  fillDisk(ballast, reserve + MB);
  await expect(tenant.createUpload(MB)).rejects.toThrow(expect.objectContaining({ code: 'storage_full' }));
  await fixture.readDocument();
  expect(await tenant.getJob(first.jobId!)).toMatchObject({ state: 'queued', attempts: 0 });
  await fixture.add({ content: 'an add still has room' });

  // Something else takes the last of it.
  fs.rmSync(ballast);
  fillDisk(ballast, 0);
  await expect(fill(fixture)).rejects.toMatchObject({ code: 'storage_full' });
  expect(await tenant.deleteDocument(first.document.id)).toMatchObject({ documents: 1 });
  await expect(tenant.getDocument(first.document.id)).rejects.toThrow('no document with this id');

  fs.rmSync(ballast);
  fixture.clock.advance(60_000);
  await fixture.drain();
  expect(await tenant.getDocument(second.document.id)).toMatchObject({ state: 'ready' });
});

/** Adds until the disk takes no more. */
async function fill({
  add,
}: {
  readonly add: (memory: { readonly content: string }) => Promise<unknown>;
}): Promise<never> {
  for (let n = 0; ; n++) await add({ content: `${n} ${'filling '.repeat(5_000)}` });
}
