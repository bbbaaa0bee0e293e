import { expect, onTestFinished, test } from 'vitest';
import { createInlineReaders } from '../../../src/engine/readers/readers.ts';
import type { Erasure } from '../../../src/engine/tenant/tenant-erasure.ts';
import { createErasureMethods } from '../../../src/engine/tenant/tenant-erasures.ts';
import { createDocumentMethods } from '../../../src/engine/tenant/tenant-documents.ts';
import { createEvalMethods } from '../../../src/engine/tenant/tenant-evals.ts';
import { createProviderCallMethods } from '../../../src/engine/tenant/tenant-provider-calls.ts';
import { createJobMethods } from '../../../src/engine/tenant/tenant-jobs.ts';
import { createLinkMethods } from '../../../src/engine/tenant/tenant-links.ts';
import { createMemoryMethods } from '../../../src/engine/tenant/tenant-memories.ts';
import type { TenantOptions } from '../../../src/engine/tenant/tenant-options.ts';
import { createStandingMethods } from '../../../src/engine/tenant/tenant-standing.ts';
import { TenantState } from '../../../src/engine/tenant/tenant-state.ts';
import type { TenantPool } from '../../../src/engine/tenant-file/tenant-pool.ts';
import { openTestEngine } from '../../support/engine-fixture.ts';

const PAGE = { limit: 10, offset: 0 };

test('what counts or sorts as many rows as a tenant has is read by reader threads', async () => {
  const fixture = await openTestEngine({ settings: { OM_WEBHOOK_ALLOW: '127.0.0.1' } });
  onTestFinished(() => fixture.close());
  const { tenant, file, batch, clock } = fixture;
  const url = 'http://127.0.0.1:9/hook';
  const query = { query: 'ferries', userId: 'ana', filter: {}, given: {}, webhookUrl: url, minScore: 0 };
  const { id, webhook } = await tenant.createStandingQuery(query);
  const [one, other] = [
    await fixture.add({ content: 'two ferries leave' }),
    await fixture.add({ content: 'a harbour closes' }),
  ];
  await tenant.linkMemories({ src: one.id, dst: other.id, type: 'supports' });
  const { document } = await tenant.addDocument({
    ...{ userId: 'ana', sessionId: '', externalId: null, title: 'A page', type: null, tags: [], metadata: {} },
    ...{ eventTime: null, expiresAt: null, source: { kind: 'url', url: 'https://example.com/a' } },
  } as unknown as Parameters<typeof tenant.addDocument>[0]);

  const { config, logger } = batch;
  const pool = { get: () => batch.open() } as unknown as TenantPool;
  const parts = { config, clock, logger, tracing: null, threads: 1, querySourceOf: () => null, languageModel: null };
  const options = {
    ...{ ...parts, id: 'default', path: file, control: fixture.engine.control, tended: new Set<string>() },
    readers: createInlineReaders(pool, parts),
    open: () => {
      throw new Error('the file was read where requests are served');
    },
  } as unknown as TenantOptions;

  const standing = createStandingMethods(options, new TenantState());
  const queries = { items: [{ id }], total: 1 };
  expect(await standing.listStandingQueries(PAGE)).toMatchObject(queries);
  expect(await standing.getStandingQuery(id)).toMatchObject({ id, answers: 0 });
  expect(await standing.listStandingAnswers(id, PAGE)).toEqual({ items: [], total: 0 });
  // @ts-expect-error: answers are those of one query, whosever it is.
  expect(await standing.listStandingAnswers(id, { ...PAGE, userId: 'ann' })).toEqual({ items: [], total: 0 });
  expect(await standing.listWebhooks(PAGE)).toMatchObject({ items: [{ id: webhook!.id }], total: 1 });
  expect(await standing.getWebhook(webhook!.id)).toMatchObject({ standingId: id });
  expect(await standing.listDeliveries(webhook!.id, PAGE)).toEqual({ items: [], total: 0 });
  expect(await createLinkMethods(options).listLinks(one.id)).toMatchObject([{ id: other.id, type: 'supports' }]);
  const documents = createDocumentMethods(options, {} as Erasure);
  expect(await documents.getDocument(document.id)).toMatchObject({ id: document.id, state: 'queued' });
  expect(await documents.listDocuments({}, PAGE)).toMatchObject({ items: [{ id: document.id }], total: 1 });
  for await (const chunks of documents.streamDocumentChunks(document.id, PAGE)) expect(chunks).toEqual([]);
  const jobs = createJobMethods(options, {} as Erasure, new TenantState());
  expect([await jobs.countWaitingJobs(), await jobs.oldestWaitingJobAt()]).toEqual([3, clock.now()]);
  const calls = await createProviderCallMethods(options).listProviderCalls({}, PAGE);
  expect(calls.total).toBe(calls.items.length);
  const set = { name: 'home', guard: false, items: [{ query: 'ferries', userId: 'ana', expected: ['two ferries'] }] };
  await tenant.putEval(set);
  const evals = createEvalMethods(options);
  expect(await evals.getEval('home')).toEqual(set);
  expect(await evals.listEvals()).toMatchObject([{ name: 'home', items: 1 }]);
  const around = { before: 1, after: 1, sameSession: false, tags: [] };
  const { anchor } = await createMemoryMethods(options, {} as Erasure, documents).timeline(one.id, around);
  expect(anchor.id).toBe(one.id);
  await tenant.deleteMemory(other.id);
  const receipts = await createErasureMethods(options).listErasures(PAGE);
  const { words, phrases, ids } = await tenant.getErasure(receipts.items[0]!.id);
  expect([words.length, phrases.length, ids]).toEqual([3, 0, [other.id]]);
  expect(receipts).toMatchObject({ items: [{ kind: 'memory', words: 3, phrases: 0 }], total: 1 });
});
