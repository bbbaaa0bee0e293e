import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { BatchContext } from '../../../src/engine/batches/batch-context.ts';
import { runNamedDocuments, runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { createTenantShares } from '../../../src/engine/parts/tenant-shares.ts';
import type { PageFetcher } from '../../../src/engine/ports.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { newDocument, upload } from '../../support/new-document.ts';

/** An engine whose pages are fetched from memory, and whose tenant has the share that its settings say. */
async function open(settings: Record<string, string>) {
  const fetched: string[] = [];
  let held: Promise<void> | undefined;
  const pageFetcher: PageFetcher = {
    async fetch(url) {
      fetched.push(url);
      await held;
      const bytes = Buffer.from(`# Page\n\nWhat stands at ${url}.`);
      const sha256 = createHash('sha256').update(bytes).digest();
      return { bytes, sha256, declared: 'markdown', charset: null, extension: 'md', etag: null, lastModified: null };
    },
    close: async () => {},
  };
  const fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none', ...settings }, pageFetcher });
  onTestFinished(() => fixture.close());
  const { engine, file, tenant } = fixture;
  const batch: BatchContext = { ...fixture.batch, share: createTenantShares(engine.control, engine.rates)(file) };
  return {
    ...fixture,
    get store() {
      return fixture.store;
    },
    batch,
    fetched,
    /** Holds all fetches. @returns what lets them go */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    addUpload: async (text: string) => tenant.addDocument(newDocument(await upload(tenant, text))),
    addPage: (n: number) => tenant.addDocument(newDocument({ kind: 'url', url: `https://example.com/${n}` })),
    readNext: () => runNextDocument(batch, { alone: false, onClaimed: () => {} }),
  };
}

/** State, attempts and reason of each document's job, and the time until it is due (ms), in the order of the adds. */
function jobsOf({ all, clock }: Pick<TestEngine, 'all' | 'clock'>) {
  return all<{ state: string; charged: number; code: string | null; error: string | null; inMs: number }>(
    `SELECT step || ' ' || state AS state, attempts + crashes AS charged, error_code AS code, error, run_at - ? AS inMs
     FROM jobs WHERE kind = 'document' ORDER BY seq`,
    clock.now(),
  );
}

test('a tenant that spent its parser time waits until enough of it is back, and its jobs say why', async () => {
  const fixture = await open({ OM_TENANT_PARSE_SECONDS: '1' });
  for (const name of ['One', 'Two', 'Three']) await fixture.addUpload(`# ${name}`);
  expect(await fixture.readNext()).toBe(true);
  expect(await fixture.readNext()).toBe(false);
  const [first, ...waiting] = jobsOf(fixture);
  expect(first).toMatchObject({ charged: 0, code: null });
  const message = 'it waits: parse_seconds (OM_TENANT_PARSE_SECONDS) allows the tenant 1 s of parsers a minute';
  const wait = { state: 'ingest queued', charged: 0, code: 'rate_limited', error: message };
  expect(waiting).toMatchObject([wait, wait]);
  for (const { inMs } of waiting) expect(inMs).toBeGreaterThan(0);
  expect(JSON.stringify(await fixture.tenant.listJobs({ limit: 3, offset: 0 }))).toContain(message);
  expect(await fixture.batch.metrics.registry.metrics()).toContain(
    'cairn_postponed_documents_total{limit="parse_seconds"} 2',
  );

  // The debt of a document is paid after an hour at the latest.
  fixture.clock.advance(3_600_000);
  expect(await fixture.readNext()).toBe(true);
  expect(jobsOf(fixture).filter(({ code }) => code !== null)).toHaveLength(1);
});

test('parser time is spent by a document whose reading fails, too', async () => {
  const fixture = await open({ OM_TENANT_PARSE_SECONDS: '60' });
  const source = await upload(fixture.tenant, '%PDF-1.7 and no more', 'broken.pdf');
  await fixture.tenant.addDocument(newDocument({ ...source, declared: 'pdf' } as typeof source));
  const left = () => fixture.engine.rates.peek({ key: 'default', kind: 'parse_ms' }, { cost: 0, perMinute: 60_000 });
  expect(left().remaining).toBe(60_000);
  await fixture.readNext();
  expect(fixture.get('SELECT error_code FROM jobs')).toBe('corrupt_document');
  expect(left().remaining).toBeLessThan(60_000);
});

test('pages over the fetches of a minute wait one after the other, and uploads go on', async () => {
  const fixture = await open({ OM_TENANT_FETCHES: '2' });
  for (const n of [1, 2, 3, 4]) await fixture.addPage(n);
  await fixture.addUpload('# Notes');
  while (await fixture.readNext());
  expect(fixture.fetched).toEqual(['https://example.com/1', 'https://example.com/2']);
  const jobs = jobsOf(fixture);
  for (const read of [0, 1, 4]) expect(jobs[read]).toMatchObject({ charged: 0, code: null });
  const waits = { state: 'ingest queued', charged: 0, code: 'rate_limited' };
  expect(jobs[2]).toMatchObject({ ...waits, inMs: 30_000 });
  expect(jobs[3]).toMatchObject({ ...waits, inMs: 60_000 });

  fixture.clock.advance(30_000);
  while (await fixture.readNext());
  expect(fixture.fetched).toHaveLength(3);
  fixture.clock.advance(30_000);
  while (await fixture.readNext());
  expect(fixture.fetched).toHaveLength(4);
});

test('of a tenant no more pages are fetched at once than it may, in whichever worker', async () => {
  const fixture = await open({ OM_TENANT_FETCHES_AT_ONCE: '2' });
  for (const n of [1, 2, 3, 4]) await fixture.addPage(n);
  await fixture.addUpload('# Notes');
  const release = fixture.hold();
  const second = fixture.get<number>('SELECT seq FROM jobs ORDER BY seq LIMIT 1 OFFSET 1');
  const other = { ...fixture.batch, owner: 'another worker' };
  const reading = [fixture.readNext(), runNamedDocuments(other, { jobNos: [second], alone: false })];
  await expect.poll(() => fixture.fetched.length).toBe(2);
  // One page is handed back, the others are postponed with it, and the upload is read.
  expect(await fixture.readNext()).toBe(true);
  expect(await fixture.readNext()).toBe(true);
  expect(await fixture.readNext()).toBe(false);
  expect(fixture.fetched).toHaveLength(2);
  expect(jobsOf(fixture)).toMatchObject([
    { state: 'ingest active' },
    { state: 'ingest active' },
    { state: 'ingest queued', charged: 0, code: 'rate_limited', inMs: 1_000 },
    { state: 'ingest queued', charged: 0, code: 'rate_limited', inMs: 1_125 },
    { charged: 0, code: null },
  ]);
  release();
  await Promise.all(reading);
  fixture.clock.advance(60_000);
  while (await fixture.readNext());
  expect(fixture.fetched).toHaveLength(4);
});

test('without limits nothing waits, and no file of limits is made', async () => {
  const fixture = await open({});
  for (const n of [1, 2, 3]) await fixture.addPage(n);
  while (await fixture.readNext());
  expect(fixture.fetched).toHaveLength(3);
  expect(jobsOf(fixture).filter(({ code }) => code !== null)).toEqual([]);
  expect(fs.existsSync(fixture.batch.config.paths.rates)).toBe(false);
});

test('an import that has to wait is postponed a bounded number of jobs at a time', async () => {
  const fixture = await open({ OM_TENANT_PARSE_SECONDS: '1' });
  await fixture.addUpload('# First');
  fixture.store.db.exec(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500)
    INSERT INTO jobs (uuid, kind, document, step, state, run_at, created_at, updated_at)
    SELECT randomblob(16), 'document', 1, 'ingest', 'queued', run_at, created_at, updated_at FROM jobs, n`);
  fixture.batch.share!.spendParser(60_000);
  const waiting = () => fixture.get<number>(`SELECT count(*) FROM jobs WHERE error_code = 'rate_limited'`);
  for (const expected of [1_000, 2_000, 2_501, 2_501]) {
    expect(await fixture.readNext()).toBe(false);
    expect(waiting()).toBe(expected);
  }
});
