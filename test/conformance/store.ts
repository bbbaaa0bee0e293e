/**
 * The life of a tenant: everything that callers and workers do with a store, one operation after the other. Few results
 * are checked here; the caller compares the results of two stores, statement by statement.
 */
import { expect } from 'vitest';
import type { Tenant } from '../../src/engine/engine.ts';
import { NAME_KINDS, type MemoryFilter, type NewMemory } from '../../src/engine/types.ts';
import { decayMemories } from '../../src/engine/upkeep/decay-memories.ts';
import { expireMemories } from '../../src/engine/upkeep/expire-memories.ts';
import { runDueSchedules } from '../../src/engine/upkeep/schedules.ts';
import { tendDocuments } from '../../src/engine/upkeep/tend-documents.ts';
import { newMemory, START, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { listChunks } from '../support/list-chunks.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const PAGE = { limit: 5, offset: 0 };

/** Does all operations of the tenant's life. The store's own copies of data must not be read while it runs. */
export async function liveThrough(fixture: TestEngine): Promise<void> {
  const { tenant, clock } = fixture;
  const ids = await addMemories(fixture);
  await fixture.drain();
  clock.advance(HOUR);
  await queryMemories(tenant, ids);
  await changeMemories(fixture, ids);
  await fixture.drain();
  await lookBack(tenant, ids);
  await keepItems(fixture);
  await keepLogs(tenant);
  await stand(fixture, ids);
  await takeIn(fixture);
  await evaluate(tenant, ids);
  clock.advanceDays(40);
  await keepUp(fixture);
  await listAll(tenant, ids);
  await moveOut(fixture);
  await eraseMemories(fixture, ids);
}

async function addMemories(fixture: TestEngine): Promise<string[]> {
  const { tenant, clock } = fixture;
  const texts = [
    'Anna moved from Berlin to Hamburg in March. She works at the harbour.',
    'Does Anna still live in Berlin? Her cat is called Minka.',
    'The deploy of the billing service failed because the certificate had expired.',
    'To roll back, run `make rollback` and tell the on-call engineer.',
    'I was so happy at the concert in Hamburg yesterday!',
    'The ferry to Altona leaves at noon 🚢, says Zoë.',
  ];
  const memories: NewMemory[] = texts.map((content, n) =>
    newMemory({
      content,
      userId: n < 5 ? 'ana' : '',
      sessionId: n % 2 === 0 ? 's1' : 's2',
      tags: n % 2 === 0 ? ['home', 'übung'] : ['work'],
      files: n === 2 ? ['src/billing.ts'] : [],
      metadata: { n, deep: { list: [1, 'two', null] }, flag: n > 2 },
      type: n === 3 ? 'procedure' : null,
      externalId: `external ${n}`,
      eventTime: n === 4 ? null : START - n * DAY,
      importance: n === 1 ? 0.9 : null,
      validTo: n === 2 ? START + 90 * DAY : null,
    }),
  );
  const idempotency = { key: 'first', route: 'POST /v1/memories', bodyHash: new Uint8Array(32) };
  const { outcomes, token } = await tenant.addMemories(memories, { idempotency });
  expect((await tenant.addMemories(memories, { idempotency })).replayed).toBe(true);
  expect(await tenant.waitFor(token!, 0)).toBe(false);
  const again = await tenant.addMemories([
    newMemory({ content: texts[0]!, userId: 'ana', sessionId: 's1', eventTime: START }),
  ]);
  expect(again.outcomes[0]!.kind).toBe('duplicate');
  for (let n = 0; n < 12; n += 1) {
    await fixture.add({
      content: `Note ${n}: the lighthouse keeper counts ${n * 7} ships.`,
      userId: n % 3 ? 'bob' : 'ana',
    });
  }
  await fixture.add({ content: 'This is forgotten soon.', userId: 'bob', expiresAt: clock.now() + 2 * DAY });
  return outcomes.map((outcome) => (outcome as { id: string }).id);
}

/** Filters that use every condition, alone and together. */
const FILTERS: readonly MemoryFilter[] = [
  {},
  { userIds: ['ana'] },
  { userIds: ['ana', 'bob', 'nobody'] },
  { userIds: ['ana'], tags: ['home'], sessionIds: ['s1'] },
  { files: ['src/billing.ts'] },
  { types: ['procedure'], externalIds: ['external 3'] },
  { sectors: ['semantic', 'procedural'], statuses: ['active', 'archived'] },
  { metadata: { n: { $gte: 1, $lt: 4 }, flag: { $in: [true, false] } } },
  { metadata: { missing: null, deep: { $exists: true }, n: { $ne: 2 } } },
  { eventFrom: START - 3 * DAY, eventTo: START, createdFrom: 0, createdTo: START + DAY },
  { writtenBy: ['cli'], documentIds: [] },
];

async function queryMemories(tenant: Tenant, ids: readonly string[]): Promise<void> {
  for (const filter of FILTERS) {
    await tenant.query({ query: 'Where does Anna live, in Berlin or Hamburg?', k: 5, filter, include: [] });
    await tenant.pageMemories(filter, { limit: 3 });
  }
  const { hits } = await tenant.query({
    query: 'Why did the deploy of "the billing service" fail? Who is told?',
    k: 10,
    filter: { userIds: ['ana'] },
    explain: true,
    reinforce: true,
  });
  expect(hits.length).toBeGreaterThan(0);
  await tenant.query({ query: 'lighthouse ships', k: 5, filter: {}, asOf: { recorded: START + HOUR, valid: START } });
  await tenant.explain({ query: 'Minka', k: 3, filter: {} }, ids[1]!);
  await tenant.explain({ query: 'Minka', k: 1, filter: { tags: ['home'] } }, ids[3]!);
}

async function changeMemories({ tenant, clock }: TestEngine, ids: readonly string[]): Promise<void> {
  clock.advance(HOUR);
  await tenant.patchMemory(ids[0]!, { content: 'Anna lives in Hamburg now.', tags: ['home', 'new'] }, { ifVersion: 1 });
  await tenant.patchMemory(ids[1]!, { metadata: { n: 77 }, importance: 0.4, validTo: START + 50 * DAY });
  await tenant.patchMemory(ids[4]!, { status: 'archived', eventTime: START });
  await tenant.reinforceMemory(ids[2]!, 0.2);
  await tenant.supersedeMemory({ oldId: ids[1]!, newId: ids[0]! });
  await tenant.contradictMemories({ a: ids[2]!, b: ids[3]!, winner: ids[3] });
  for (const type of ['supports', 'depends_on', 'derived_from'] as const) {
    await tenant.linkMemories({ src: ids[0]!, dst: ids[3]!, type, weight: 0.6 });
  }
  await tenant.linkMemories({ src: ids[0]!, dst: ids[3]!, type: 'supports', weight: 0.8 });
  await tenant.unlinkMemories({ src: ids[0]!, dst: ids[3]!, type: 'supports' });
}

/** Checks that an operation failed with an error that has a code. It must fail in the same way on both stores. */
function refused(error: unknown): void {
  expect(error).toHaveProperty('code');
}

async function lookBack(tenant: Tenant, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await tenant.getMemory(id);
    await tenant.listRevisions(id);
    await tenant.listLinks(id);
    await tenant.timeline(id, { before: 2, after: 2, sameSession: false });
    await tenant.timeline(id, { before: 2, after: 2, sameSession: true });
    await tenant.neighbourhood(id, { hops: 2, limit: 20 });
  }
  for (const filter of FILTERS.filter(({ sectors }) => sectors === undefined)) {
    await tenant.query({ query: 'Anna', k: 5, filter, asOf: { recorded: START + HOUR }, reinforce: false });
  }
  await tenant.userGraph('ana', { limit: 20 });
  await tenant.listProposals({ limit: 10 });
  await tenant.listNearDuplicates({ leastSimilarity: 0.8, limit: 10 });
  await tenant.diff({ from: START - DAY, to: START + DAY, axis: 'recorded', filter: {}, fadedBelow: 0.1, limit: 20 });
  await tenant.diff({
    from: START - DAY,
    to: START + DAY,
    axis: 'valid',
    filter: { userIds: ['ana'] },
    fadedBelow: 0.1,
    limit: 20,
  });
  const { items } = await tenant.listRecalls({ limit: 5 });
  await tenant.listRecalls({ limit: 5, userId: 'ana', memoryId: ids[0]! });
  expect(items.length).toBeGreaterThan(0);
  for (const { recallId } of items) {
    const {
      candidates: [best],
    } = await tenant.getRecall(recallId);
    if (best !== undefined) await tenant.giveFeedback(recallId, 'used', [best.id]).catch(refused);
  }
  await tenant.replayRecall(items[0]!.recallId, { state: 'now', changes: {} });
  await tenant.replayRecall(items[0]!.recallId, { state: 'then', changes: { k: 2 } });
  await tenant.learnWeights().catch(refused);
  await tenant.listLearned();
}

async function keepItems({ tenant, clock }: TestEngine): Promise<void> {
  for (const [n, namespace] of ['settings', 'settings.editor', 'settings.shell', 'plans.2026'].entries()) {
    const place = { userId: 'ana', namespace, key: `key ${n}` };
    const item = {
      ...newMemory({ content: '' }),
      ...place,
      content: null,
      value: { n, on: true },
      ttlMs: n === 3 ? DAY : null,
    };
    await tenant.putItem(item);
    await tenant.putItem({ ...item, value: { n: n + 1, on: false } });
    await tenant.getItem(place);
  }
  const { items } = await tenant.listItems({ userId: 'ana', namespace: 'settings' }, { limit: 2 });
  await tenant.renewItems(items.map(({ id }) => id));
  await tenant.listNamespaces({ userId: 'ana', prefix: '', suffix: '' }, { limit: 10 });
  await tenant.listNamespaces({ prefix: 'settings.*', suffix: 'shell', maxDepth: 2 }, { limit: 10 });
  await tenant.query({ query: 'settings', k: 5, filter: { namespace: 'settings', value: { on: false } } });
  await tenant.moveNamespace({ userId: 'ana', namespace: 'settings', to: 'prefs' });
  await tenant.deleteItem({ userId: 'ana', namespace: 'plans.2026', key: 'key 3' });
  await tenant.deleteNamespace({ userId: 'ana', namespace: 'prefs' });
  clock.advance(HOUR);
}

async function keepLogs(tenant: Tenant): Promise<void> {
  const place = { userId: 'ana', sessionId: 'talk' };
  for (let n = 0; n < 3; n += 1) {
    await tenant.changeLog(place, { items: [{ say: n }, 'text'], operationId: `op ${n}` });
  }
  await tenant.readLog(place, { limit: 4 });
  await tenant.readLog(place, { limit: 4, before: 2 });
  await tenant.changeLog(place, { items: ['other'], replaces: { from: 3 } });
  await tenant.changeLog(place, { items: [], replaces: { expected: ['other'] } });
  await tenant.popLog(place);
  await tenant.clearLog(place);
}

async function stand(fixture: TestEngine, ids: readonly string[]): Promise<void> {
  const { tenant } = fixture;
  const created = await tenant.createStandingQuery({
    query: 'What does Anna do?',
    userId: 'ana',
    filter: {},
    given: {},
    minScore: 0.05,
  });
  const hook = await tenant.createWebhook({ url: 'https://example.com/hook', kinds: [], userId: 'ana' });
  const cursor = await tenant.newestEvent();
  const newer = await fixture.add({ content: 'Anna sails every Sunday with her harbour friends.', userId: 'ana' });
  await fixture.drain();
  await tenant.supersedeMemory({ oldId: ids[0]!, newId: newer.id });
  await tenant.tendStanding(AbortSignal.timeout(600_000));
  await tenant.listEvents({ limit: 20, cursor });
  await tenant.listStandingQueries(PAGE);
  await tenant.listStandingAnswers(created.id, PAGE);
  await tenant.listWebhooks(PAGE);
  await tenant.listDeliveries(hook.id, { ...PAGE, state: 'pending' });
  await tenant.retryDeliveries(hook.id);
  await tenant.deleteWebhook(hook.id);
  await tenant.deleteStandingQuery(created.id);
}

async function takeIn(fixture: TestEngine): Promise<void> {
  const { tenant } = fixture;
  const text = '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nRun the rollback job, then tell Anna.\n';
  const first = await tenant.addDocument(
    newDocument(await upload(tenant, text), {
      userId: 'ana',
      externalId: 'runbook',
      tags: ['ops'],
      metadata: { v: 1 },
    }),
  );
  const documentId = first.document.id;
  await fixture.drain();
  await tenant.getDocument(documentId);
  await listChunks(tenant, documentId, PAGE);
  for await (const piece of await tenant.documentContent(documentId)) expect(piece).not.toBe('');
  await tenant.documentReceipt(documentId, PAGE);
  await tenant.query({ query: 'How is a rollback done?', k: 5, filter: { documentIds: [documentId] } });
  await tenant.replaceDocument(
    documentId,
    newDocument(await upload(tenant, `${text}\nNew: page the duty officer.\n`), { userId: 'ana' }),
  );
  await fixture.drain();
  await tenant.listDocuments({}, PAGE);
  await tenant.listDocuments({ userIds: ['ana'], states: ['ready'], sessionIds: [''] }, PAGE);
  const other = await tenant.addDocument(newDocument(await upload(tenant, 'Never read.', 'other.md')));
  await tenant.cancelDocument(other.document.id);
  await tenant.deleteDocument(documentId);
  await fixture.drain();
}

async function evaluate(tenant: Tenant, ids: readonly string[]): Promise<void> {
  const items = [{ query: 'Where does Anna live?', userId: 'ana', expected: [ids[0]!], k: 5 }];
  await tenant.putEval({ name: 'home', guard: true, items });
  await tenant.runEval('home');
  await tenant.runDueEvals();
  await tenant.listEvals();
  await tenant.getEval('home');
  await tenant.listEvalRuns('home', 5);
  await tenant.deleteEval('home');
}

async function keepUp(fixture: TestEngine): Promise<void> {
  const { maintenance, tenant, clock } = fixture;
  await decayMemories(maintenance);
  await expireMemories(maintenance);
  await tendDocuments(maintenance);
  for (let n = 0; n < 3; n += 1) {
    await runDueSchedules(maintenance);
    clock.advanceDays(1);
  }
  await tenant.previewDecay({ at: clock.now() + 30 * DAY });
}

async function listAll(tenant: Tenant, ids: readonly string[]): Promise<void> {
  await tenant.listMemories({}, PAGE);
  await tenant.listMemories({ userIds: ['ana'], tags: ['home'] }, PAGE);
  for (const kind of NAME_KINDS) {
    if (kind !== 'sessions') await tenant.listNames(kind, { prefix: '' }, { limit: 3 });
    await tenant.listNames(kind, { prefix: 'h', userId: 'ana' }, { limit: 3 });
  }
  await tenant.listPresent(ids, {});
  await tenant.sectorStats();
  await tenant.listEntities({ prefix: '', userId: undefined }, PAGE);
  await tenant.listEntities({ prefix: 'a', userId: 'ana' }, PAGE);
  await tenant.getEntity('Anna', 'ana').catch(refused);
  await tenant.stats();
  await tenant.listProviderCalls({}, PAGE);
  await tenant.listProviderUsage(0);
  const { items } = await tenant.listJobs(PAGE);
  await tenant.listJobs({ ...PAGE, state: 'done', kind: 'memory' });
  for (const { id } of items) {
    await tenant.getJob(id);
    await tenant.retryJob(id).catch(refused);
    await tenant.cancelJob(id).catch(refused);
  }
  await tenant.countJobs();
  await tenant.countWaitingJobs();
  await tenant.countActiveJobs();
  await tenant.oldestWaitingJobAt();
  await tenant.listAudit({ limit: 10 });
  await tenant.embedding();
  await tenant.reembedStatus();
}

async function moveOut({ tenant }: TestEngine): Promise<void> {
  const lines: string[] = [];
  for await (const line of tenant.exportLines({ vectors: true })) lines.push(line);
  expect(lines.length).toBeGreaterThan(2);
}

async function eraseMemories(fixture: TestEngine, ids: readonly string[]): Promise<void> {
  const { tenant } = fixture;
  await tenant.deleteMemory(ids[3]!);
  await tenant.deleteMemories({ userIds: ['ana'] });
  await fixture.drain();
  await tenant.deleteMemories({ userIds: ['bob'], sessionIds: [''] });
  await tenant.listErasures(PAGE);
  await tenant.stats();
}
