import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExplanationItem } from '../../src/api/schemas/query-replies.ts';
import { startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

type Explanation = ExplanationItem;
interface Body {
  readonly query: string;
  readonly [field: string]: unknown;
}

let api: TestApi;
beforeAll(async () => void (api = await startApi({ folder: tempFolder(), workers: true })));
afterAll(() => api.stop());

/** Adds and waits until it is encoded and linked. */
async function remember(item: object): Promise<string> {
  const reply = await api.request('POST', '/memory/add?wait=60000', { body: item });
  expect(reply.status).toBe(200);
  return reply.body.id;
}

async function rememberAll(items: readonly object[]): Promise<string[]> {
  const ids: string[] = [];
  for (const item of items) ids.push(await remember(item));
  return ids;
}

async function explain(body: Body, memoryId: string): Promise<Explanation> {
  const reply = await api.request('POST', '/explain', { body: { ...body, memory_id: memoryId } });
  expect(reply.body).toMatchObject({ memory_id: memoryId });
  return reply.body as unknown as Explanation;
}

async function found(body: Body): Promise<string[]> {
  const reply = await api.request('POST', '/memory/query', { body: { ...body, reinforce: false } });
  expect(reply.status, reply.text).toBe(200);
  return reply.body.matches.map(({ id }) => id);
}

/** The request with all changes made, as a program would make them. */
function changed(body: Body, changes: NonNullable<Explanation['changes']>): Body {
  const next = structuredClone(body) as Record<string, unknown>;
  for (const [field, value] of Object.entries(changes)) {
    const [, inMetadata] = /^filters\.metadata\.(.*)$/s.exec(field) ?? [];
    const path = inMetadata === undefined ? field.split('.') : ['filters', 'metadata', inMetadata];
    let holder = next;
    for (const part of path.slice(0, -1)) holder = (holder[part] ??= {}) as Record<string, unknown>;
    if (value === null) delete holder[path.at(-1)!];
    else holder[path.at(-1)!] = value;
  }
  return next as Body;
}

/**
 * The memory is missing for this reason; the changes named bring it back, and each is said in a sentence that names its
 * field.
 */
async function expectTrueRemedy(body: Body, memoryId: string): Promise<Explanation> {
  expect(await found(body)).not.toContain(memoryId);
  const explanation = await explain(body, memoryId);
  const { remedies, changes } = explanation;
  expect(changes, remedies.join('; ')).not.toBeNull();
  const said = remedies.join('; ');
  for (const field of Object.keys(changes!)) expect(said).toContain(field.split('.').at(-1));
  expect(await found(changed(body, changes!)), said).toContain(memoryId);
  return explanation;
}

describe('POST /explain', () => {
  test('a hit is explained as it is in the answer itself', async () => {
    const id = await remember({ content: 'The spare key hangs behind the boiler.', user_id: 'hit' });
    const body = { query: 'where is the spare key?', user_id: 'hit', explain: true, reinforce: false };
    const [match] = (await api.request('POST', '/memory/query', { body })).body.matches as unknown as {
      explain: object;
      score: number;
    }[];
    expect(await explain(body, id)).toMatchObject({
      outcome: 'returned',
      rank: 1,
      score: expect.closeTo(match!.score, 6) as number,
      failed_filters: [],
      superseded_by: null,
      terms: { matched: ['spare', 'key'], in_context: [], missed: [] },
      remedies: [],
      changes: {},
      explain: { terms: ['spare', 'key'] },
    });
  });

  test('a memory that is unknown, deleted or expired is a 404', async () => {
    const gone = await remember({ content: 'A note to be deleted.', user_id: 'gone' });
    await api.request('DELETE', `/memory/${gone}`);
    const late = await remember({ content: 'A note that ends.', user_id: 'gone' });
    await api.request('PATCH', `/memory/${late}`, { body: { expires_at: '1970-01-01' } });
    expect((await api.request('GET', `/memory/${late}`)).status).toBe(404);
    for (const memory_id of [gone, late, 'nobody']) {
      const reply = await api.request('POST', '/explain', { body: { query: 'note', memory_id } });
      expect([reply.status, reply.body.code]).toEqual([404, 'not_found']);
    }
  });

  test('another user than the one named has no memory to explain, wherever he is named', async () => {
    const memory_id = await remember({ content: 'The safe opens at noon.', user_id: 'owner' });
    for (const other of [
      { user_id: 'stranger' },
      { filters: { user_id: 'stranger' } },
      { filters: { users: ['stranger', 'second'] } },
      { user_id: 'owner', filters: { users: ['stranger'] } },
    ]) {
      const reply = await api.request('POST', '/explain', { body: { query: 'safe noon', memory_id, ...other } });
      expect([reply.status, reply.body.code, reply.body.detail]).toEqual([404, 'not_found', 'no memory with this id']);
    }
    for (const own of [{}, { user_id: 'owner' }, { filters: { users: ['stranger', 'owner'] } }]) {
      const reply = await api.request('POST', '/explain', { body: { query: 'safe noon', memory_id, ...own } });
      expect(reply.body['outcome']).toBe('returned');
    }
  });

  test('and a query take no query parameters', async () => {
    for (const path of ['/explain', '/memory/query']) {
      const reply = await api.request('POST', `${path}?user_id=ann`, { body: { query: 'x' } });
      expect([reply.status, reply.body.detail]).toEqual([400, 'query parameters: none are allowed here']);
    }
  });

  test('shows terms as a person wrote them, each once', async () => {
    const id = await remember({ content: 'Version 2.6 of Zulu3 fixes userName.', user_id: 'written' });
    const query = { query: 'Zulu3 2.6 userName C++', user_id: 'written' };
    const { terms } = await explain(query, id);
    expect(JSON.stringify(terms)).not.toMatch(/[ǀǁǂǃ]/);
    expect(terms.matched).toEqual(expect.arrayContaining(['zulu3', '2.6', 'username']));
    expect(terms.missed).toContain('C++');
    const all = [...terms.matched, ...terms.in_context, ...terms.missed];
    expect(new Set(all).size).toBe(all.length);
    const reply = await api.request('POST', '/memory/query', { body: { ...query, explain: true } });
    expect(reply.text).not.toMatch(/[ǀǁǂǃ]/);
  });

  test('asks for a memory, and takes every field of a query', async () => {
    const without = await api.request('POST', '/explain', { body: { query: 'x' } });
    expect([without.status, without.body.errors]).toEqual([400, ['memory_id: expected a string']]);
    const id = await remember({ content: 'The whole query may be sent.', user_id: 'whole' });
    const body = { query: 'whole query', user_id: 'whole', format: 'prompt', expand: ['neighbours'], explain: true };
    expect((await explain(body, id)).outcome).toBe('returned');
  });
});

describe('remedies are true', () => {
  test('k: others fill the places', async () => {
    const ids = await rememberAll(
      // All speak of ferries; the last holds the word once in a long sentence, so that it fits worst.
      [
        ...Array.from({ length: 9 }, (_, place) => ({ content: `Ferry ${place} leaves early.`, user_id: 'places' })),
        {
          content: 'Nobody in the office could say whether the blue boat that we saw from the pier was a ferry or not.',
          user_id: 'places',
        },
      ],
    );
    const explanation = await expectTrueRemedy({ query: 'ferry', user_id: 'places', k: 3 }, ids.at(-1)!);
    expect(explanation).toMatchObject({ outcome: 'beyond_k', remedies: [expect.stringMatching(/^raise k to \d+$/)] });
  });

  test('min_score and relative_floor: it is too weak', async () => {
    const [, weak] = await rememberAll([
      { content: 'The violin lesson is on Monday at six.', user_id: 'weak' },
      { content: 'Monday is washing day, with much to fold and to iron until late in the evening.', user_id: 'weak' },
    ]);
    const query = { query: 'violin lesson Monday', user_id: 'weak' };
    const low = await expectTrueRemedy({ ...query, min_score: 0.99 }, weak!);
    expect(low).toMatchObject({ outcome: 'below_min_score', rank: 2 });
    expect(low.changes!['min_score']).toBeLessThanOrEqual(low.score!);
    expect((await expectTrueRemedy({ ...query, min_score: 0, relative_floor: 0.99 }, weak!)).outcome).toBe(
      'below_relative_floor',
    );
  });

  test('cut: it says too little of what is asked', async () => {
    const [, other] = await rememberAll([
      { content: 'Lena plays the oboe.', user_id: 'exact' },
      { content: 'Lena lives in Ghent.', user_id: 'exact' },
    ]);
    const query = { query: 'What does Lena play?', user_id: 'exact', cut: 'exact', min_score: 0 };
    expect(await expectTrueRemedy(query, other!)).toMatchObject({ outcome: 'not_exact', changes: { cut: 'none' } });
    const relative = { ...query, query: 'Lena plays what kind of oboe?', cut: 'relative' };
    expect((await expectTrueRemedy(relative, other!)).outcome).toBe('below_relative_floor');
  });

  test('token_budget: it was full', async () => {
    const ids = await rememberAll([
      { content: `Rent is due on the first. ${'It is paid by standing order. '.repeat(8)}`, user_id: 'tokens' },
      {
        content: `The rent rose in spring, and nobody told us. ${'We wrote a letter. '.repeat(20)}`,
        user_id: 'tokens',
      },
    ]);
    for (const format of ['json', 'prompt', 'text']) {
      const body = { query: 'rent due', user_id: 'tokens', token_budget: 100, min_score: 0, relative_floor: 0, format };
      const missing = ids.filter((id) => id === ids[1]);
      const explanation = await explain(body, missing[0]!);
      expect([explanation.outcome, explanation.remedies]).toEqual([
        'over_budget',
        [expect.stringMatching(/^token_budget of 100 was full: raise it to \d+$/)],
      ]);
      const reply = await api.request('POST', '/memory/query', { body: changed(body, explanation.changes!) });
      expect(reply.text).toContain('rent rose in spring');
    }
  });

  test('per_document and top_k: enough of its document or kind came back', async () => {
    const tenant = await api.engine.tenant('default');
    const [root, ...parts] = await rememberAll([
      { content: 'Handbook of the greenhouse.', user_id: 'parts' },
      { content: 'Greenhouse tomatoes: water them daily.', user_id: 'parts' },
      { content: 'Greenhouse tomatoes: tie them up.', user_id: 'parts' },
      { content: 'Greenhouse tomatoes: a long list of what else can go wrong with them there.', user_id: 'parts' },
    ]);
    for (const part of parts) await tenant.linkMemories({ src: part, dst: root!, type: 'derived_from' });
    const query = { query: 'greenhouse tomatoes', user_id: 'parts', min_score: 0, relative_floor: 0 };
    const last = async (more: object) => {
      const back = await found({ ...query, ...more });
      return parts.find((part) => !back.includes(part))!;
    };
    const one = { per_document: 1 };
    expect((await expectTrueRemedy({ ...query, ...one }, await last(one))).outcome).toBe('document_limit');
    const kind = { per_document: 0, top_k: { knowledge: 1 } };
    expect((await expectTrueRemedy({ ...query, ...kind }, await last(kind))).outcome).toBe('kind_limit');
    const without = { per_document: 0, include_episodes: false };
    expect((await expectTrueRemedy({ ...query, ...without }, root!)).changes).toEqual({ include_episodes: true });
  });

  test('deep_recall: it was superseded, and the live end is named', async () => {
    const tenant = await api.engine.tenant('default');
    const [oldId, newId] = await rememberAll([
      { content: 'Mina lives in Porto.', user_id: 'moved' },
      { content: 'Mina lives in Bergen now.', user_id: 'moved' },
    ]);
    await tenant.supersedeMemory({ oldId: oldId!, newId: newId! });
    const explanation = await expectTrueRemedy({ query: 'where does Mina live?', user_id: 'moved' }, oldId!);
    expect(explanation).toMatchObject({
      outcome: 'superseded',
      superseded_by: newId,
      remedies: [`superseded by ${newId}: set deep_recall to true`],
    });
  });

  test('deep_recall and filters.statuses: it was archived', async () => {
    const id = await remember({ content: 'Old choir rehearsal plan.', user_id: 'attic' });
    await api.request('PATCH', `/memory/${id}`, { body: { status: 'archived' } });
    const query = { query: 'choir rehearsal plan', user_id: 'attic' };
    expect(await expectTrueRemedy(query, id)).toMatchObject({
      outcome: 'filtered',
      failed_filters: ['status'],
      remedies: ['it is archived: set deep_recall to true'],
    });
    expect((await expectTrueRemedy({ ...query, filters: { statuses: ['active'] } }, id)).failed_filters).toEqual([
      'filters.statuses',
    ]);
  });

  test('as_of: it held at another time', async () => {
    const past = await remember({
      content: 'The shop opens at nine.',
      user_id: 'hours',
      event_time: '2020-03-01',
      valid_from: '2020-01-01',
      valid_to: '2021-01-01',
    });
    const query = { query: 'when does the shop open?', user_id: 'hours' };
    const explanation = await expectTrueRemedy(query, past);
    expect(explanation).toMatchObject({
      failed_filters: ['validity'],
      changes: { as_of: { valid: Date.UTC(2020, 2, 1) } },
    });
    expect((await expectTrueRemedy({ ...query, as_of: '2020-02-01' }, past)).failed_filters).toEqual(['as_of.valid']);
    const recorded = { ...query, as_of: { valid: Date.UTC(2020, 5, 1), recorded: Date.UTC(2020, 5, 1) } };
    expect((await expectTrueRemedy(recorded, past)).failed_filters).toEqual(['as_of.recorded']);
  });

  test.each<[string, object, readonly string[]]>([
    ['filters.sessions', { filters: { sessions: ['s2'] } }, ['filters.sessions']],
    ['filters.types', { filters: { types: ['todo'] } }, ['filters.types']],
    ['filters.tags', { filters: { tags: ['bike', 'red'] } }, ['filters.tags']],
    ['filters.external_ids', { filters: { external_ids: ['e2'] } }, ['filters.external_ids']],
    ['filters.documents', { filters: { documents: [randomUUID()] } }, ['filters.documents']],
    ['filters.sectors', { filters: { sectors: ['procedural'] } }, ['filters.sectors']],
    ['filters.event_time', { filters: { event_time: { to: '1990-01-01' } } }, ['filters.event_time']],
    ['filters.created_at', { filters: { created_at: { to: '1990-01-01' } } }, ['filters.created_at']],
    ['endTime', { endTime: '1990-01-01' }, ['filters.created_at']],
    ['filters.metadata', { filters: { metadata: { 'a.b': 2, size: { $gt: 1 } } } }, ['filters.metadata.a.b']],
    [
      'several at once',
      { min_score: 1, filters: { tags: ['red'], metadata: { 'a.b': 1, size: { $gt: 7 } } } },
      ['filters.tags', 'filters.metadata.size'],
    ],
  ])('%s: a condition keeps it out', async (name, conditions, failed) => {
    const id = await remember({
      content: `The bicycle is in the cellar, ${name}.`,
      user_id: 'anna',
      session_id: 's1',
      type: 'note',
      tags: ['bike'],
      metadata: { 'a.b': 1, size: 5, sector: 'semantic' },
    });
    const body = { query: `bicycle cellar ${name}`, user_id: 'anna', ...conditions };
    expect(await expectTrueRemedy(body, id)).toMatchObject({ outcome: 'filtered', failed_filters: failed, rank: null });
  });

  test('vector_weight: words alone do not know a misspelt one', async () => {
    const id = await remember({ content: 'Kubernetes upgrade on Friday.', user_id: 'typo' });
    const explanation = await expectTrueRemedy({ query: 'kubrenetes', user_id: 'typo', vector_weight: 0 }, id);
    expect(explanation).toMatchObject({
      outcome: 'no_match',
      terms: { matched: [], missed: ['kubrenetes'] },
      cosine: null,
    });
    expect(explanation.remedies[0]).toBe('vectors took no part: remove vector_weight');
  });
});

describe('explain: true', () => {
  test('a query says of each stage what it took, gave and cost, and why each hit came', async () => {
    await rememberAll([
      { content: 'The harbour library lends charts of the coast.', user_id: 'trace', session_id: 't' },
      { content: 'It opens at ten.', user_id: 'trace', session_id: 't' },
    ]);
    const body = { query: 'harbour library', user_id: 'trace', explain: true, min_score: 0, relative_floor: 0 };
    const reply = (await api.request('POST', '/memory/query', { body })).body;
    const trace = reply['trace'] as { stage: string; in: number; out: number; ms: number; note?: string }[];
    expect(trace.map(({ stage }) => stage)).toEqual(
      expect.arrayContaining([
        'embed',
        'plan',
        'lexical',
        'dense',
        'fuse',
        'expand',
        'score',
        'resolve',
        'rerank',
        'calibrate',
        'floor',
        'pack',
      ]),
    );
    for (const stage of trace) {
      expect(stage).toEqual({
        stage: expect.any(String),
        ms: expect.any(Number),
        in: expect.any(Number),
        out: expect.any(Number),
        ...('note' in stage ? { note: expect.any(String) } : {}),
      });
    }
    expect(trace.find(({ stage }) => stage === 'plan')?.note).toContain('exact over 2');
    const [first] = reply.matches as unknown as { explain: Record<string, unknown> }[];
    expect(first!.explain).toMatchObject({
      lexical: { rank: 1, bm25: expect.any(Number), coverage: expect.any(Number) },
      dense: { rank: 1, similarity: expect.any(Number), window: 0 },
      fused: { rank: 1, score: expect.any(Number) },
      profile: 'composite',
      features: { similarity: 1 },
      weights: { similarity: 0.7 },
      adjustments: expect.any(Array),
      terms: ['harbour', 'library'],
    });
  });

  test('without it neither trace nor explanations are sent', async () => {
    const reply = (await api.request('POST', '/memory/query', { body: { query: 'harbour', user_id: 'trace' } })).body;
    expect(reply).not.toHaveProperty('trace');
    expect(reply.matches[0]).not.toHaveProperty('explain');
  });
});
