import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type { BatchContext } from '../../src/engine/batches/batch-context.ts';
import { runNextDocument } from '../../src/engine/batches/run-document.ts';
import { createTenantShares } from '../../src/engine/parts/tenant-shares.ts';
import type { DocumentParser, PageFetcher } from '../../src/engine/ports.ts';
import type { NewDocument } from '../../src/engine/types.ts';
import { openTestEngine } from './engine-fixture.ts';
import { newDocument, upload } from './new-document.ts';

/** Returns a text with as many sections, each of which becomes a chunk, and with them the root memory. */
export const sections = (count: number, name: string) =>
  Array.from(
    { length: count },
    (_, at) => `# ${name} ${at}\n\n${`The heron ${name} ${at} stands here. `.repeat(24)}`,
  ).join('\n\n');

/** Opens an engine whose tenant may store as many memories, and whose pages are fetched from memory. */
export async function openWithQuota(maxMemories: number, settings: Record<string, string> = {}) {
  const fetched: string[] = [];
  const pageFetcher: PageFetcher = {
    async fetch(url) {
      fetched.push(url);
      const bytes = Buffer.from(`# Page\n\nWhat stands at ${url}.`);
      const sha256 = createHash('sha256').update(bytes).digest();
      return { bytes, sha256, declared: 'markdown', charset: null, extension: 'md', etag: null, lastModified: null };
    },
    close: async () => {},
  };
  const fixture = await openTestEngine({
    settings: {
      OM_EMBEDDINGS: 'none',
      OM_CHUNK_TOKENS: '300',
      OM_CHUNK_OVERLAP_TOKENS: '0',
      ...settings,
      OM_TENANT_MAX_MEMORIES: `${maxMemories}`,
    },
    pageFetcher,
  });
  const { engine, file, tenant } = fixture;
  let parses = 0;
  const documentParser: DocumentParser = {
    ...fixture.batch.documentParser!,
    parse: (...parameters) => {
      parses += 1;
      return fixture.batch.documentParser!.parse(...parameters);
    },
  };
  const share = createTenantShares(engine.control, engine.rates)(file);
  const batch: BatchContext = { ...fixture.batch, documentParser, share };
  const readNext = () => runNextDocument(batch, { alone: false, onClaimed: () => {} });
  const countStored = () => fixture.batch.open().store.prepare('SELECT count(*) FROM memories').pluck().get() as number;
  const addText = async (text: string, fields: Partial<NewDocument> = {}) =>
    tenant.addDocument(newDocument(await upload(tenant, text), fields));
  return {
    fixture,
    tenant,
    fetched,
    readNext,
    countStored,
    addText,
    parses: () => parses,
    addPage: (n: number) => tenant.addDocument(newDocument({ kind: 'url', url: `https://example.com/${n}` })),
    readAll: async () => {
      while (await readNext());
    },
    setLimit: (limit: number) => engine.control.limits.change({ tenantId: 'default' }, { max_memories: limit }),
  };
}

/** Documents that wait count as one memory each where others are handed in. */
export async function expectWaitingToCount(settings?: Record<string, string>): Promise<void> {
  const quota = await openWithQuota(4, settings);
  await using fixture = quota.fixture;
  const { tenant, addPage } = quota;
  const first = await addPage(1);
  for (const n of [2, 3, 4]) await addPage(n);
  const message = expect.stringMatching(
    /^quota max_memories \(OM_TENANT_MAX_MEMORIES\): 0 are stored, .* 4 are allowed/,
  );
  await expect(addPage(5)).rejects.toMatchObject({ code: 'storage_full', message });
  // One that waits already adds nothing, and one that was cancelled does not wait.
  expect(await addPage(2)).toMatchObject({ outcome: 'unchanged' });
  await tenant.cancelDocument(first.document.id);
  expect(await addPage(5)).toMatchObject({ outcome: 'accepted' });
  await expect(addPage(6)).rejects.toMatchObject({ code: 'storage_full' });
  // Each page becomes two memories: two fit, and the others wait unread at no attempt.
  await quota.readAll();
  expect(quota.countStored()).toBe(4);
  expect(quota.fetched).toHaveLength(2);
  fixture.clock.advance(10_000);
  await quota.readAll();
  expect([quota.countStored(), quota.fetched.length]).toEqual([4, 2]);
  const jobs = (await tenant.listJobs({ limit: 9, offset: 0 })).items;
  expect(jobs.filter(({ error }) => error?.code === 'storage_full')).toMatchObject([
    {
      state: 'queued',
      attempts: 0,
      error: { message: expect.stringMatching(/max_memories \(OM_TENANT_MAX_MEMORIES\)/) },
    },
    { state: 'queued', attempts: 0 },
  ]);
}

/** A document for which there is too little room waits, and is read once there is enough. */
export async function expectToWaitForRoom(settings?: Record<string, string>): Promise<void> {
  const quota = await openWithQuota(7, settings);
  await using fixture = quota.fixture;
  const { tenant } = quota;
  const { document: small } = await quota.addText(sections(2, 'small'));
  await quota.readAll();
  expect(quota.countStored()).toBe(3);
  const { document, jobId } = await quota.addText(sections(5, 'large'));
  await quota.readAll();
  const waits = { state: 'queued', attempts: 0, error: { code: 'storage_full' } };
  expect(await tenant.getJob(jobId!)).toMatchObject(waits);
  expect(await tenant.getDocument(document.id)).toMatchObject({ state: 'queued' });
  expect([quota.countStored(), quota.parses()]).toEqual([3, 2]);
  // Its size is known now, so it is not read again while there is too little room; others that fit are read.
  fixture.clock.advance(60_000);
  await quota.addText(sections(2, 'other'));
  await quota.readAll();
  expect(await tenant.getJob(jobId!)).toMatchObject(waits);
  expect([quota.countStored(), quota.parses()]).toEqual([6, 3]);
  await tenant.deleteDocument(small.id);
  quota.setLimit(9);
  fixture.clock.advance(60_000);
  await quota.readAll();
  expect([quota.countStored(), quota.parses()]).toEqual([9, 4]);
  expect((await tenant.getDocument(document.id)).chunks).toBe(5);
}
