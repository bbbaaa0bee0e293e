/** A tenant that lives in PostgreSQL, beside one in a file: both give the same answers to the same calls. */
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { LINE_SCHEMAS } from '../../src/api/schemas/portable.ts';
import { readConfig } from '../../src/engine/config.ts';
import { openControlDatabase } from '../../src/engine/control/open-control-database.ts';
import { systemClock } from '../../src/engine/ports.ts';
import type { AsOf, MemoryFilter, PortableLine } from '../../src/engine/types.ts';
import { decayMemories } from '../../src/engine/upkeep/decay-memories.ts';
import { liveThrough } from '../conformance/store.ts';
import { CHANGED_LINKS } from '../conformance/changed-links.ts';
import { diffTopics } from '../conformance/diff-topics.ts';
import { diffWork } from '../conformance/diff-work.ts';
import { pairsWork } from '../conformance/pairs-work.ts';
import { pastExport, pastHits, pastNeighbours, pastSizes } from '../conformance/past-sizes.ts';
import { pastVectors } from '../conformance/past-vectors.ts';
import { erasesNames, undoStanding, UNDO_SETTINGS } from '../conformance/undo-standing.ts';
import { newMemory, openTestEngine, START, type TestEngine } from '../support/engine-fixture.ts';
import { newDocument, upload } from '../support/new-document.ts';
import { startPostgres, type PostgresServer } from '../support/postgres.ts';
import { databaseFile, startServiceProcess, type ServiceProcess } from '../support/running-service.ts';
import { tempFolder } from '../support/temp-folder.ts';

const server = (await startPostgres()) as PostgresServer;
describe.skipIf(server === undefined)('a tenant in PostgreSQL', () => {
  afterAll(() => server?.stop());

  test('a timeline has the nearest memories in their order', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const { tenant, add, clock } = fixture;
    const ids: string[] = [];
    for (let no = 0; no < 12; no += 1)
      ids.push((await add({ content: `Day ${no}.`, userId: 'ana', sessionId: 's', eventTime: clock.now() + no })).id);
    const { before, after } = await tenant.timeline(ids[6]!, { before: 3, after: 3, sameSession: false });
    const contents = (memories: readonly { readonly content: string }[]) => memories.map(({ content }) => content);
    expect(contents(before)).toEqual(['Day 3.', 'Day 4.', 'Day 5.']);
    expect(contents(after)).toEqual(['Day 7.', 'Day 8.', 'Day 9.']);
  });

  test('an empty list of values matches nothing', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const { tenant, clock, add } = fixture;
    await add({ content: 'The harbour.', type: 'note' });
    const recorded = clock.now();
    const find = async (filter: MemoryFilter, asOf?: AsOf) =>
      (await tenant.query({ query: 'harbour', k: 5, filter, asOf })).hits.length;
    for (const filter of [{ types: [] }, { statuses: [] }, { sessionIds: [] }, { userIds: [] }])
      expect([await find(filter), await find(filter, { recorded })]).toEqual([0, 0]);
    expect(await find({ types: ['note'] }, { recorded })).toBe(1);
    for (const filter of [{ sessionIds: [] }, { userIds: [] }])
      expect(await tenant.deleteMemories(filter)).toMatchObject({ memories: 0, documents: 0 });
  });

  test('lives a whole life', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EVENTS: 'true', OM_DATABASE_URL: server.url } });
    await liveThrough(fixture);
    expect((await fixture.tenant.stats()).memories).toBeGreaterThanOrEqual(0);
  });

  test('keeps memories without a word, alone and among others', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    for (const contents of [['!!!'], ['€', '…'], ['harbour', '???'], ['- - -', 'ship']])
      await fixture.tenant.addMemories(contents.map((content) => newMemory({ content })));
    await fixture.drain();
    const memories = await fixture.tenant.listMemories({}, { limit: 10, offset: 0 });
    expect(memories.map(({ content }) => content)).toEqual(['ship', '- - -', '???', 'harbour', '…', '€', '!!!']);
  });

  test('undoes the standing queries and webhooks of a key', async () => {
    await using fixture = await openTestEngine({
      settings: { ...UNDO_SETTINGS, OM_DATABASE_URL: await emptyDatabase() },
    });
    await undoStanding(fixture);
  });

  test('erases the name of a user from the deliveries that are made meanwhile', async () => {
    await using fixture = await openTestEngine({
      settings: { ...UNDO_SETTINGS, OM_DATABASE_URL: await emptyDatabase() },
    });
    await erasesNames(fixture);
  });

  test.each(CHANGED_LINKS)('%s', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    await check(fixture);
  });

  test('undoes what a key changed, field by field', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const { tenant } = fixture;
    const add = async (content: string) => {
      const { outcomes } = await tenant.addMemories([newMemory({ content, title: 'a title' })]);
      return (outcomes[0] as { id: string }).id;
    };
    const [spoiled, mended] = [await add('one'), await add('two')];
    const leaked = tenant.as('leaked');
    await tenant.as('owner').patchMemory(spoiled, { tags: ['owned'] });
    for (const content of ['spoiled', 'spoiled again']) await leaked.patchMemory(spoiled, { content });
    await leaked.patchMemory(spoiled, { title: 'no title', tags: [] });
    await leaked.patchMemory(mended, { content: 'spoiled, too' });
    await tenant.as('owner').patchMemory(mended, { content: 'mended' });
    expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 1, unrestored: 1 });
    expect(await tenant.getMemory(spoiled)).toMatchObject({ content: 'one', title: 'a title', tags: ['owned'] });
    expect(await tenant.getMemory(mended)).toMatchObject({ content: 'mended' });
    await tenant.as('owner').patchMemory(spoiled, { title: 'another title' });
    expect(await tenant.deleteMemories({ writtenBy: ['leaked'] })).toMatchObject({ restored: 0, unrestored: 1 });
    expect(await tenant.getMemory(spoiled)).toMatchObject({ content: 'one', title: 'another title' });
  });

  test.each([
    ['lists and differences', pastSizes],
    ['queries', pastHits],
    ['neighbours', pastNeighbours],
    ['exports', pastExport],
  ])('%s of the past are measured by what was there then', async (_, check) => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    await check(fixture);
  });

  test('a difference counts its rows while it reads them, and ends with its work', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    await diffWork(fixture);
  });

  test('lists of pairs count what they leave out, and end with their work', async () => {
    await using fixture = await openTestEngine({
      settings: { OM_EMBEDDINGS: 'none', OM_DATABASE_URL: await emptyDatabase() },
    });
    await pairsWork(fixture);
  });

  test('an export has no vectors of texts that were written after it began', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    await pastVectors(fixture);
  });

  test('a topic leaves out nothing that is about it', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    await diffTopics(fixture);
  });

  test('an import writes the words of the memories that follow its long lines in later commits', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const names = ['late', 'middle', 'early'];
    const lines = names.map((name, place) =>
      LINE_SCHEMAS.memory.parse({
        ...{ type: 'memory', id: randomUUID(), user_id: 'ana', session_id: 's' },
        ...{
          content: `${'heron '.repeat(120_000)}${name}`,
          event_time: new Date(START - place * 3_600_000).toISOString(),
        },
      }),
    );
    const ids = lines.map(({ id }) => id);
    expect(await fixture.tenant.importLines(lines as PortableLine[])).toEqual(Array(3).fill({ kind: 'stored' }));
    const asked = { k: 5, filter: {}, vectorWeight: 0, minScore: 0, reinforce: false };
    for (const [query, found] of [
      ['early', [ids[2], ids[1]]],
      ['middle', [ids[1], ids[0]]],
    ] as const) {
      const { hits } = await fixture.tenant.query({ query, ...asked });
      expect(new Set(hits.map(({ memory }) => memory.id))).toEqual(new Set(found));
    }
  });

  test('a receipt of a batch compares its items with what was changed since', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const { tenant } = fixture;
    const { outcomes } = await tenant.addMemories(['one', 'two'].map((content) => newMemory({ content })));
    const ids = outcomes.map((outcome) => (outcome as { id: string }).id);
    const note = async (first: number, contents: readonly string[], id?: string) => {
      const items = contents.map((content, place) => ({
        ...{ item: first + place, fate: 'stored' as const, memoryId: ids[place]!, content, error: null },
      }));
      return tenant.noteBatch({ items, first, isLast: first > 1, ...(id === undefined ? {} : { id }) });
    };
    const id = await note(1, ['one', 'two']);
    await tenant.patchMemory(ids[0]!, { title: 'a title' });
    await tenant.patchMemory(ids[1]!, { content: 'changed' });
    await note(3, ['one', 'changed'], id);
    const { items, isComplete } = await tenant.batchReceipt(id, { limit: 10, offset: 0 });
    expect([items.map(({ isHeld }) => isHeld), isComplete]).toEqual([[true, false, true, true], false]);
  });

  test('answers as a tenant in a file, to the last digit', async () => {
    await using inFile = await openTestEngine();
    await using inDatabase = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const [one, other] = [await answersOf(inFile), await answersOf(inDatabase)];
    expect(one.length).toBeGreaterThan(QUESTIONS.length);
    expect(other).toEqual(one);
  });

  test('answers about metadata, values and earlier versions with U+0000', async () => {
    await using inFile = await openTestEngine();
    await using inDatabase = await openTestEngine({ settings: { OM_DATABASE_URL: await emptyDatabase() } });
    const [one, other] = [await answersAboutZeros(inFile), await answersAboutZeros(inDatabase)];
    expect(one).toEqual([['a', 'b'], ['a'], ['b'], ['b'], ['c'], ['a', 'b', 'c']]);
    expect(other).toEqual(one);
  });

  test('serves over HTTP what a file serves, and has it again after a restart', async () => {
    const [folder, otherFolder] = [tempFolder(), tempFolder()];
    const settings = { OM_DATABASE_URL: await emptyDatabase() };
    const inDatabase = await startServiceProcess({ folder, settings });
    const inFile = await startServiceProcess({ folder: otherFolder });
    const [one, other] = [await callThrough(inFile), await callThrough(inDatabase)];
    expect(one).toHaveLength(8);
    expect(other).toEqual(one);
    expect(fs.existsSync(databaseFile(folder))).toBe(false);
    await Promise.all([inFile.end('SIGTERM'), inDatabase.end('SIGKILL')]);
    const again = await startServiceProcess({ folder, settings });
    const { body } = await again.request('GET', '/memory/all');
    expect(body.items.map(({ content }) => content)).toContain('Anna lives in Hamburg and works at the harbour.');
    expect(await again.end('SIGTERM')).toMatchObject({ code: 0 });
  });

  test('refuses what is not built, and a folder whose tenant has a file', async () => {
    const settings = { OM_DATABASE_URL: server.url, OM_TENANT_MAX_MB: '5', OM_WORD_INDEX: 'fts5-match' };
    expect(() => readConfig(settings)).toThrow(/OM_TENANT_MAX_MB=5: it is[^]*OM_WORD_INDEX=fts5-match/);
    expect(() => readConfig({ OM_DATABASE_URL: 'mysql://127.0.0.1/x' })).toThrow(
      /OM_DATABASE_URL=\(hidden\): expected/,
    );
    const file = path.join(tempFolder(), 'cairn.sqlite');
    await (await openTestEngine({ file })).close();
    const settingsOfBoth = { OM_DATABASE_URL: server.url };
    await expect(openTestEngine({ file, settings: settingsOfBoth })).rejects.toThrow(/move them with `cairn move`/);
    fs.rmSync(path.join(path.dirname(file), 'cairn.control.sqlite'));
    await expect(openTestEngine({ file, settings: { OM_DATABASE_URL: server.url } })).rejects.toThrow(/has a file at/);
  });

  test('erases a tenant with all its rows, and gives its name again', async () => {
    const database = await emptyDatabase();
    const file = path.join(tempFolder(), 'cairn.sqlite');
    const config = readConfig({ OM_DB_PATH: file, OM_DATABASE_URL: database, OM_EVENTS: 'true' });
    const control = openControlDatabase(config, systemClock);
    control.createTenant('acme');
    const fixture = await openTestEngine({ file, settings: { OM_DATABASE_URL: database, OM_EVENTS: 'true' } });
    const acme = await fixture.engine.tenant('acme');
    await acme.addMemories([newMemory({ content: 'A secret of acme.', userId: 'ana', tags: ['x'] })]);
    await fixture.close();
    control.eraseTenant('acme');
    expect(await server.read(database, 'SELECT content FROM memories')).toEqual([]);
    control.createTenant('acme');
    control.close();
  });
});

/** A schema of its own for a test. */
function emptyDatabase(): Promise<string> {
  return server.createSchema();
}

const QUESTIONS = [
  'Where does Anna live?',
  'Why did the deploy of "the billing service" fail?',
  'Who counts the ships of the lighthouse, and how many?',
  'src/billingService.ts certificate',
  '灯台守は船を数える',
  'rollback job of the queue',
];

/** What questions with conditions find among memories that hold U+0000, as the names of the memories. */
async function answersAboutZeros({ tenant, clock }: TestEngine): Promise<string[][]> {
  const metadata = { a: { zero: 'x\0y', n: 1 }, b: { zero: 'x\\u0000y', n: 1 }, c: { ['k\0']: 2 } };
  const ids = new Map<string, string>();
  for (const [name, of] of Object.entries(metadata)) {
    const memory = newMemory({ content: `harbour \0 ${name}`, userId: 'ana', type: 'note', metadata: of });
    const [outcome] = (await tenant.addMemories([memory])).outcomes;
    if (outcome?.kind === 'accepted') ids.set(outcome.id, name);
  }
  const item = { ...newMemory({ content: '', userId: 'ana' }), content: null, value: { z: '\0' } };
  await tenant.putItem({ ...item, namespace: 'n', key: 'k' });
  const before = clock.now();
  clock.advance(1_000);
  for (const id of ids.keys()) await tenant.patchMemory(id, { type: 'changed' });
  const find = async (filter: MemoryFilter, asOf?: AsOf) => {
    const { hits } = await tenant.query({ query: 'harbour', k: 10, filter, asOf });
    return hits.map(({ memory }) => ids.get(memory.id)!).toSorted();
  };
  const { items } = await tenant.listItems({ userId: 'ana', namespace: '', value: { z: '\0' } }, { limit: 10 });
  expect(items).toHaveLength(1);
  return [
    await find({ metadata: { n: 1 } }),
    await find({ metadata: { zero: 'x\0y' } }),
    await find({ metadata: { zero: 'x\\u0000y' } }),
    await find({ metadata: { zero: { $in: ['\0', 'x\\u0000y'] } } }),
    await find({ metadata: { ['k\0']: { $exists: true } } }),
    await find({ types: ['note'] }, { recorded: before }),
  ];
}

async function answersOf(fixture: TestEngine): Promise<unknown[]> {
  const { tenant, clock } = fixture;
  const texts = [
    'Anna moved from Berlin to Hamburg in March. She works at the harbour.',
    'The deploy of the billing service failed because the certificate in src/billingService.ts had expired.',
    '灯台守は毎日船を数える。',
    ...Array.from(
      { length: 40 },
      (_, n) => `Note ${n}: the lighthouse keeper counts ${n * 7} ships, ${n % 3} of them late.`,
    ),
  ];
  const memories = texts.map((content, n) =>
    newMemory({
      content,
      userId: n % 2 ? 'ana' : 'bob',
      sessionId: `s${n % 4}`,
      tags: [`t${n % 3}`],
      eventTime: START - n,
    }),
  );
  const { outcomes } = await tenant.addMemories(memories);
  const ids = outcomes.map((outcome) => (outcome as { id: string }).id);
  await tenant.addDocument(
    newDocument(
      await upload(tenant, '# Runbook\n\nRestart the queue first.\n\n## Rollback\n\nRun the rollback job.\n'),
    ),
  );
  const answers: unknown[] = [];
  const ask = async () => {
    for (const query of QUESTIONS) {
      for (const userIds of [undefined, ['ana']]) {
        const filter = userIds === undefined ? {} : { userIds };
        // What an answer reinforces is written after it, at a moment that no test can name.
        const { hits } = await tenant.query({ query, k: 10, filter, minScore: 0, reinforce: false });
        answers.push(hits.map(({ memory, score }) => [memory.content, memory.salience, score]));
      }
    }
  };
  await ask();
  await fixture.drain();
  await ask();
  await tenant.patchMemory(ids[0]!, { content: 'Anna lives in Altona now, not in Hamburg.' });
  await tenant.deleteMemory(ids[5]!);
  await tenant.deleteMemory(ids[6]!);
  await fixture.drain();
  clock.advanceDays(30);
  await decayMemories(fixture.maintenance);
  await ask();
  const left = await tenant.listMemories({}, { limit: 100, offset: 0 });
  answers.push(left.map(({ content, salience }) => `${content} ${salience}`).sort());
  return answers;
}

async function callThrough(service: ServiceProcess): Promise<unknown[]> {
  const replies: unknown[] = [];
  const call = async (method: string, route: string, body?: unknown) => {
    const reply = await service.request(method, route, body === undefined ? {} : { body });
    replies.push([reply.status, Object.keys(reply.body).sort()]);
    return reply;
  };
  const contentsOf = async (query: string) => {
    // What an answer reinforces is written after it, at a moment that no test can name.
    const question = { query, k: 5, min_score: 0, reinforce: false };
    const { body } = await service.request('POST', '/memory/query', { body: question });
    replies.push(body.matches.map(({ content }) => content));
  };
  const texts = [
    'Anna lives in Hamburg and works at the harbour.',
    'The ferry to Altona leaves at noon.',
    'The certificate of the billing service had expired.',
  ];
  const added = [];
  for (const content of texts) added.push((await service.request('POST', '/memory/add', { body: { content } })).body);
  await service.idle();
  await call('POST', '/memory/ingest', {
    content_type: 'text',
    data: '# Runbook\n\nRestart the queue, then roll back.',
  });
  await service.idle();
  await contentsOf('Where does Anna live?');
  await contentsOf('How do we roll back the queue?');
  await call('GET', `/memory/${added[0]!.id}`);
  await call('DELETE', `/memory/${added[1]!.id}`);
  await call('GET', `/memory/${added[1]!.id}`);
  await contentsOf('ferry to Altona');
  await call('GET', '/stats');
  return replies;
}
