/** How PostgreSQL finds chunks, what must be erased and what is due among many documents that wait or failed. */
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findAbandoned } from '../../src/engine/store/document-generations.ts';
import { findOldestErasing, listMatchingDocuments, listUnderWay } from '../../src/engine/store/documents.ts';
import { claimDocument, claimJobs, hasDueJob, hasDueJobAt } from '../../src/engine/store/job-claims.ts';
import { peekDispatchBatch, readLedgerStatus } from '../../src/engine/store/dispatch.ts';
import { openBlockingConnection } from '../../src/engine/store/postgres/blocking-connection.ts';
import { migrateSchema } from '../../src/engine/store/postgres/migrate-schema.ts';
import { ensureTenant } from '../../src/engine/store/postgres/open-postgres-store.ts';
import { postponeDocuments } from '../../src/engine/store/waiting-documents.ts';
import { openTestEngine, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { watchPlans, type RunStatement } from '../support/postgres-plans.ts';
import { listChunks } from '../support/list-chunks.ts';
import { startPostgres } from '../support/postgres.ts';
import { tempFolder } from '../support/temp-folder.ts';

const MIGRATIONS = path.resolve(import.meta.dirname, '../../src/engine/store/postgres/migrations');

/** Number of documents that failed, and of documents whose jobs are not due. */
const MANY = 5_000;
/** Greatest number of rows that a statement may read. */
const FEW = 200;

const server = await startPostgres();
describe.skipIf(server === undefined)('among many documents that wait or failed', () => {
  let fixture: TestEngine;
  let plans: () => RunStatement[];
  let id: string;
  let chunkId: string;

  beforeAll(async () => {
    const url = await server!.createSchema();
    plans = await watchPlans(server!, url);
    fixture = await openTestEngine({ settings: { OM_DATABASE_URL: url } });
    const { tenant, clock } = fixture;
    const source = await upload(tenant, '# Herons\n\nThe heron stands in the river.');
    id = (await tenant.addDocument(newDocument(source))).document.id;
    await fixture.drain();
    chunkId = (await listChunks(tenant, id, { limit: 1, offset: 0 }))[0]!.memoryId;
    const tenantNo = '(SELECT tenant FROM documents LIMIT 1)';
    const numbers = `generate_series(1000, ${999 + MANY}) AS n`;
    await server!.read(
      url,
      `SET session_replication_role = replica;
       INSERT INTO documents (tenant, document_no, id, user_id, external_id, state, next_no, created_at, updated_at)
         SELECT ${tenantNo}, n, 'failed ' || n, 'eve', '', 'failed', n, 1, 1 FROM ${numbers};
       INSERT INTO document_generations (tenant, generation_no, document_no, created_at, source)
         SELECT ${tenantNo}, n, n, 1, 'url' FROM ${numbers};
       INSERT INTO jobs (tenant, seq, uuid, kind, document, step, state, priority, run_at, created_at, updated_at)
         SELECT ${tenantNo}, n, decode(md5(n::text), 'hex'), 'document', n, 'ingest', 'queued', 0,
           ${clock.now() + 60_000}, 1, 1 FROM ${numbers};
       UPDATE numbers SET last = last + 10000000;
       SELECT 1`,
    );
    for (const table of ['documents', 'document_generations', 'jobs']) await server!.read(url, `ANALYZE ${table}`);
  });
  afterAll(async () => {
    await fixture?.close();
    server?.stop();
  });

  const expectFewRows = (least: number) => {
    const statements = plans().filter(({ text }) => /\b(document_generations|jobs)\b/.test(text));
    expect(statements.length).toBeGreaterThanOrEqual(least);
    expect(statements.filter(({ rowsRead }) => rowsRead > FEW)).toEqual([]);
  };

  test('a chunk is read and found', async () => {
    const { tenant } = fixture;
    plans();
    expect(await tenant.getMemory(chunkId)).toMatchObject({ id: chunkId });
    const { hits } = await tenant.query({ query: 'heron', k: 3, filter: {}, minScore: 0, reinforce: false });
    expect(hits.map(({ memory }) => memory.id)).toContain(chunkId);
    expectFewRows(2);
  });

  test('what must be erased is found', () => {
    const { store } = fixture.batch.open();
    plans();
    expect(findAbandoned(store)).toBeUndefined();
    expect(findAbandoned(store, 'an id')).toBeUndefined();
    expect(findOldestErasing(store, Infinity)).toBeUndefined();
    expectFewRows(3);
  });

  test('what a delete matches is found', () => {
    const { store } = fixture.batch.open();
    plans();
    const found = listMatchingDocuments(store, { userIds: ['eve'] }, { except: '', after: 0, limit: 100 });
    expect(found).toEqual(Array.from({ length: 100 }, (_, place) => 1000 + place));
    expect(listUnderWay(store, found, { except: '', now: 0 })).toEqual([]);
    const [matching, underWay] = plans();
    expect([matching!.pairsDropped < FEW, underWay!.pairsDropped]).toEqual([true, 0]);
  });

  test('what is due is found', () => {
    const { store } = fixture.batch.open();
    const now = fixture.clock.now();
    const claims = { owner: 'a worker', leaseMs: 15_000, now };
    const wait = { which: 'all' as const, ms: 1_000, apartMs: 0, code: 'rate_limited', message: 'it waits', now };
    plans();
    expect([hasDueJob(store, now), hasDueJobAt(store, 'ingest', now)]).toEqual([false, false]);
    expect(store.write(() => claimDocument(store, { ...claims, alone: false }))).toBeUndefined();
    expect(store.write(() => claimJobs(store, { ...claims, step: 'encode', limit: 64 }))).toEqual([]);
    expect(store.write(() => postponeDocuments(store, wait))).toBe(0);
    const handedOut = { step: 'ingest', bulk: false, partial: true, embedsHere: true, now } as const;
    expect(peekDispatchBatch(store, handedOut)).toBeUndefined();
    expect(readLedgerStatus(store, { leaseMs: 15_000, now })).toMatchObject({
      interactive: [],
      bulk: [],
      isUnfinished: true,
    });
    expectFewRows(6);
  });

  test('the migration marks what must be erased of each tenant', async () => {
    const url = await server!.createSchema();
    const connection = openBlockingConnection(url);
    try {
      migrateSchema(connection, earlierSteps(17));
      for (const name of ['a', 'b']) {
        const tenant = ensureTenant(connection, name);
        await server!.read(
          url,
          `INSERT INTO documents (tenant, document_no, id, user_id, external_id, state, live_no, next_no, created_at,
             updated_at)
           VALUES (${tenant}, 1, 'a', '', '', 'ready', 1, NULL, 0, 0), (${tenant}, 2, 'b', '', '', 'queued', 2, 3, 0, 0),
             (${tenant}, 3, 'c', '', '', 'deleting', NULL, NULL, 0, 0);
           INSERT INTO document_generations (tenant, generation_no, document_no, hidden, created_at, source)
           SELECT ${tenant}, n, d, h, 0, 'upload'
             FROM (VALUES (1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 2, 1), (5, 3, 1)) AS g (n, d, h);
           SELECT 1`,
        );
      }
      migrateSchema(connection);
    } finally {
      connection.close();
    }
    const rows = await server!.read(url, 'SELECT hidden FROM document_generations ORDER BY tenant, generation_no');
    expect(rows.map((row) => Number((row as { hidden: unknown }).hidden))).toEqual([0, 0, 1, 2, 2, 0, 0, 1, 2, 2]);
  });

  test('the migrations make known files of each tenant known, for a role that row-level security binds', async () => {
    const url = await server!.createSchema();
    const connection = openBlockingConnection(url);
    try {
      migrateSchema(connection, earlierSteps(24));
      for (const name of ['a', 'b']) {
        const tenant = ensureTenant(connection, name);
        await server!.read(
          url,
          `INSERT INTO documents (tenant, document_no, id, user_id, external_id, state, created_at, updated_at)
           VALUES (${tenant}, 1, 'a', 'ana', '', 'ready', 0, 0), (${tenant}, 2, 'b', 'ana', 'named', 'ready', 0, 0);
           INSERT INTO document_generations (tenant, generation_no, document_no, created_at, source)
           VALUES (${tenant}, 1, 1, 0, 'upload'), (${tenant}, 2, 2, 0, 'upload');
           SELECT 1`,
        );
      }
      migrateSchema(connection);
    } finally {
      connection.close();
    }
    const rows = await server!.read(url, 'SELECT nameless_of FROM document_generations ORDER BY tenant, generation_no');
    expect(rows.map((row) => (row as { nameless_of: unknown }).nameless_of)).toEqual(['ana', null, 'ana', null]);
  });
});

/** Returns a folder with the first migrations alone. */
function earlierSteps(count: number): string {
  const folder = tempFolder();
  const steps = fs.readdirSync(MIGRATIONS).sort().slice(0, count);
  for (const step of steps) fs.copyFileSync(path.join(MIGRATIONS, step), path.join(folder, step));
  return folder;
}
