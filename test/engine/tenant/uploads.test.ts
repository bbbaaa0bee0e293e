import fs from 'node:fs';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { createArrivingSpace } from '../../../src/engine/documents/arriving-space.ts';
import {
  hasUpload,
  readInParts,
  readUpload,
  readUploadPart,
  removeUpload,
  uploadsFolder,
  writeUploadPart,
} from '../../../src/engine/documents/uploads.ts';
import type { Tenant } from '../../../src/engine/engine.ts';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { createInlineReaders } from '../../../src/engine/readers/readers.ts';
import type { TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { createUploadMethods } from '../../../src/engine/tenant/tenant-uploads.ts';
import type { TenantOptions } from '../../../src/engine/tenant/tenant-options.ts';
import { TenantState } from '../../../src/engine/tenant/tenant-state.ts';
import { tendDocuments } from '../../../src/engine/upkeep/tend-documents.ts';
import { createGroupingWriter } from '../../../src/engine/writer/grouping-writer.ts';
import { startWriterThread } from '../../../src/engine/writer/thread-transport.ts';
import { keepsRetriedFile, refusesGoneFile } from '../../conformance/gone-files.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

const TEXT = '# Ferries\n\nTwo ferries leave the harbour each day.\n';

async function open(settings: Record<string, string> = {}): Promise<TestEngine> {
  const fixture = await openTestEngine({ settings });
  onTestFinished(() => fixture.close());
  return fixture;
}

const uploads = ({ file }: TestEngine): string[] =>
  fs.existsSync(uploadsFolder(file)) ? fs.readdirSync(uploadsFolder(file)) : [];
const documents = (fixture: TestEngine) => fixture.get<number>('SELECT count(*) FROM documents');

/** The upload methods on a writer thread of their own, which a test can reach. */
async function onThread({ batch, engine, file, clock }: TestEngine) {
  const { promise, resolve } = Promise.withResolvers<Worker>();
  process.once('worker', resolve);
  const metrics = createMetrics();
  const writer = createGroupingWriter(startWriterThread({ config: batch.config, identity: null, metrics }), {
    metrics,
  });
  onTestFinished(() => writer.close());
  const { config, logger } = batch;
  const parts = { config, clock, logger, tracing: null, threads: 1, querySourceOf: () => null, languageModel: null };
  const pool = { get: () => batch.open() } as unknown as TenantPool;
  const options = {
    ...{ id: 'default', path: file, config: batch.config, clock, control: engine.control, metrics, writer },
    ...{
      arrivingSpace: createArrivingSpace(),
      analyzerOf: null,
      readers: createInlineReaders(pool, parts),
      dispatcher: { dispatch() {} },
    },
  } as unknown as TenantOptions;
  return { methods: createUploadMethods(options, new TenantState()) as unknown as Tenant, thread: await promise };
}

test('a document whose commit came about is read, although the writer thread ended before it answered', async () => {
  const fixture = await open();
  const { methods, thread } = await onThread(fixture);
  const source = await upload(methods, TEXT);
  // From here on its answers are lost.
  thread.removeAllListeners('message');
  const failed = expect(methods.addDocument(newDocument(source))).rejects.toMatchObject({
    ...{ code: 'unavailable', mayBeWritten: true },
  });
  await expect.poll(() => documents(fixture)).toBe(1);
  await thread.terminate();
  await failed;
  expect(uploads(fixture)).toHaveLength(1);
  // What is asked of a thread that has ended is not stored, so its file goes.
  const later = methods.addDocument(newDocument(await upload(methods, 'Another.')));
  await expect(later).rejects.toMatchObject({ code: 'unavailable', mayBeWritten: false });
  expect(uploads(fixture)).toHaveLength(1);
  const again = await fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, TEXT)));
  expect(again.outcome).toBe('unchanged');
  await fixture.drain();
  expect(await fixture.tenant.getDocument(again.document.id)).toMatchObject({ state: 'ready', error: null });
  expect([documents(fixture), uploads(fixture)]).toEqual([1, []]);
});

test('a file whose commit may have come about and did not is swept away', async () => {
  const fixture = await open();
  const { methods, thread } = await onThread(fixture);
  const source = await upload(methods, TEXT);
  // Another connection has the lock, so the thread cannot commit before it is ended.
  fixture.store.db.exec('BEGIN IMMEDIATE');
  const failed = expect(methods.addDocument(newDocument(source))).rejects.toMatchObject({ mayBeWritten: true });
  await nextTurn();
  await nextTurn();
  await thread.terminate();
  fixture.store.db.exec('ROLLBACK');
  await failed;
  await tendDocuments(fixture.maintenance);
  expect([documents(fixture), uploads(fixture)]).toEqual([0, [source.kind === 'upload' && source.name]]);
  fixture.clock.set(Date.now() + 3_600_000);
  await tendDocuments(fixture.maintenance);
  expect(uploads(fixture)).toEqual([]);
});

test('a file that a command refuses goes at once', async () => {
  const fixture = await open({ OM_MAX_BACKLOG: '1' });
  await fixture.add({ content: 'It waits.' });
  const adding = fixture.tenant.addDocument(newDocument(await upload(fixture.tenant, TEXT)));
  await expect(adding).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('OM_MAX_BACKLOG'),
  });
  expect(uploads(fixture)).toEqual([]);
});

test('a document whose file is gone before its commit is refused', async () => {
  await refusesGoneFile(await open());
});

test('a file that is about to be removed stays if its document is to be read again', async () => {
  await keepsRetriedFile(await open());
});

test('a known document whose waiting file is gone is read from the file that comes again', async () => {
  const fixture = await open();
  const { tenant } = fixture;
  const add = async () => tenant.addDocument(newDocument(await upload(tenant, TEXT)));
  const first = await add();
  expect(await add()).toMatchObject({ outcome: 'unchanged', jobId: first.jobId });
  expect(uploads(fixture)).toHaveLength(1);
  for (const name of uploads(fixture)) fs.rmSync(path.join(uploadsFolder(fixture.file), name));
  const again = await add();
  expect(again).toMatchObject({ outcome: 'accepted', document: { id: first.document.id } });
  expect(again.jobId).not.toBe(first.jobId);
  await fixture.drain();
  expect(await tenant.getDocument(first.document.id)).toMatchObject({ state: 'ready', error: null });
  expect(await add()).toMatchObject({ outcome: 'unchanged', jobId: null });
  await tendDocuments(fixture.maintenance);
  expect([documents(fixture), uploads(fixture)]).toEqual([1, []]);
});

test.each(['../secret', '/etc/hostname', '', '01a21887-1b20-737e-9d6d-0ba88eac16f3.upload/../../secret'])(
  'a file named %j is no waiting file, and neither read, written nor removed',
  async (name) => {
    const { file, store, tenant } = await open();
    await upload(tenant, TEXT); // It makes the folder.
    const secret = path.join(path.dirname(file), 'secret');
    fs.writeFileSync(secret, 'secret');
    const missing = { code: 'upload_missing' };
    expect(hasUpload(file, name)).toBe(false);
    await expect(readUpload(store, name)).rejects.toMatchObject(missing);
    await expect(buffer(readUploadPart(file, name, { start: 0, end: 1 }))).rejects.toMatchObject(missing);
    expect(() => [...readInParts(file, name)]).toThrow(expect.objectContaining(missing));
    const part = { name, part: 0, data: Buffer.from('other') };
    expect(() => writeUploadPart(file, part)).toThrow(expect.objectContaining({ code: 'unprocessable' }));
    removeUpload(file, name);
    expect(fs.readFileSync(secret, 'utf8')).toBe('secret');
  },
);
