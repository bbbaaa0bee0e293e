import { expect, test } from 'vitest';
import { compareStanding, indexes } from '../../../src/engine/readers/standing.ts';
import { countMeters } from '../../../src/engine/readers/standing-meters.ts';
import { forgetIndex, indexOf } from '../../../src/engine/readers/standing-upkeep.ts';
import { forgetNeighbours } from '../../../src/engine/readers/standing-vectors.ts';
import type { ReadContext } from '../../../src/engine/readers/read-context.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { listUnembeddedQueries, putStandingVectors } from '../../../src/engine/store/standing-vectors.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { deleteStandingQuery, insertStandingQuery, putStandingTexts } from '../../../src/engine/store/standing.ts';
import { createRandom } from '../../../src/engine/random.ts';
import type { RetrievalOptions } from '../../../src/engine/types.ts';
import { newMemory, openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';
import { startFakeServer } from '../../support/fake-server.ts';

const WORDS = 'harbour ferry lighthouse captain anchor compass schooner barnacle mooring starboard';
const DIMENSIONS = 1_536;
const DEFAULTS = { minScore: 0 } as RetrievalOptions;

/** Opens an engine whose embedder is a provider, so that vectors find queries, with a memory that is encoded. */
async function openWithProvider(content = WORDS): Promise<TestEngine & { readonly memoryNo: number }> {
  const provider = await startFakeServer((response, { text }) => {
    const { input } = JSON.parse(text) as { readonly input: readonly string[] };
    const embedding = Array.from({ length: DIMENSIONS }, (_, at) => Math.sin(at + 1));
    const data = input.map((_, index) => ({ object: 'embedding', index, embedding }));
    const body = { object: 'list', model: 'm', data, usage: { prompt_tokens: 1, total_tokens: 1 } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const settings = {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_OPENAI_MODEL: 'm',
    OPENAI_API_KEY: 'key',
    OM_VEC_DIM: String(DIMENSIONS),
  };
  const fixture = await openTestEngine({ settings });
  const { memoryNo } = await fixture.add({ content, userId: 'ana' });
  await fixture.drain();
  const closeEngine = fixture.close;
  const close = async () => {
    await closeEngine();
    await provider[Symbol.asyncDispose]();
  };
  return Object.assign(fixture, { memoryNo, close, [Symbol.asyncDispose]: close });
}

/** Makes that many standing queries of all users; `filter` is the SQL of a query's filter, with its number `n`. */
function addQueries({ store }: TestEngine, count: number, query: string, filter = `'{}'`, id = 'q'): void {
  store.write(() =>
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         INSERT INTO standing_queries (id, query, filter, given, created_at)
         SELECT ? || n, ? || n, ${filter}, '{}', 0 FROM numbers`,
      )
      .run(count, id, query),
  );
}

/** Gives each standing query a vector of the live model. */
function addVectors(fixture: TestEngine): number {
  const modelNo = fixture.get<number>('SELECT model_no FROM vector_codes LIMIT 1');
  const embedding = Float32Array.from({ length: DIMENSIONS }, (_, at) => Math.cos(3 * at));
  const vectors = fixture.all<{ queryNo: number }>('SELECT query_no AS queryNo FROM standing_queries');
  const { store } = fixture;
  store.write(() =>
    putStandingVectors(
      store,
      modelNo,
      vectors.map(({ queryNo }) => ({ queryNo, embedding })),
    ),
  );
  return modelNo;
}

const contextOf = ({ batch }: TestEngine, querySourceOf: ReadContext['querySourceOf'] = () => null): ReadContext => ({
  ...batch,
  ...{ logger: silentLogger, tracing: null, threads: 1, languageModel: null, querySourceOf },
});

type Asked = Parameters<typeof compareStanding>[1];

/** Compares as `compareStanding`, in a first read that need not index queries before. */
async function compareIndexed(context: ReadContext, asked: Asked): ReturnType<typeof compareStanding> {
  for (;;) {
    const { memoryNos, afterQuery } = asked;
    const { matches, rest } = await compareStanding(context, asked);
    if (rest?.memoryNos !== memoryNos || rest.afterQuery !== afterQuery) return { matches, rest };
  }
}

test('a read embeds some hundred queries that have no vector, all together', async () => {
  await using fixture = await openWithProvider();
  addQueries(fixture, 600, WORDS);
  let [calls, running, most] = [0, 0, 0];
  const embedQuery = async () => {
    calls += 1;
    most = Math.max(most, (running += 1));
    await new Promise(setImmediate);
    running -= 1;
    return new Float32Array(DIMENSIONS).fill(1 / Math.sqrt(DIMENSIONS));
  };
  const context = contextOf(fixture, () => ({ embedder: fixture.batch.embedder!, embedQuery }));
  const asked = { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS };
  const { matches } = await compareIndexed(context, asked);
  expect([calls, most]).toEqual([256, 256]);
  // The others are compared by their words.
  expect(matches).toHaveLength(600);
  addVectors(fixture);
  await compareIndexed(context, asked);
  expect(calls).toBe(256);
});

test('a memory whose vectors are compared with many queries leaves the next memories to another read', async () => {
  await using fixture = await openWithProvider('A quiet evening.');
  const { store, memoryNo: first } = fixture;
  const further = Array.from({ length: 49 }, (_, no) =>
    newMemory({ content: `A quiet evening, ${no}.`, userId: 'ana' }),
  );
  await fixture.tenant.addMemories(further);
  await fixture.drain();
  addQueries(fixture, 4_000, 'harbour ');
  const modelNo = addVectors(fixture);
  const memoryNos = fixture.all<{ no: number }>('SELECT seq AS no FROM memories ORDER BY seq').map(({ no }) => no);
  expect([memoryNos[0], memoryNos.length]).toEqual([first, 50]);
  const compare = (from: readonly number[] = memoryNos) =>
    compareIndexed(contextOf(fixture), {
      memoryNos: from,
      afterQuery: 0,
      defaults: { minScore: 0.9 },
    });
  expect((await compare()).rest).toBeNull();

  store.write(() => {
    store
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 7)
         INSERT INTO vectors (memory, user_no, model_no, window_no, role, embedding)
         SELECT memory, user_no, model_no, n, role, embedding FROM vectors, numbers
         WHERE model_no = ? AND window_no = 0`,
      )
      .run(modelNo);
    store
      .prepare(
        `INSERT OR IGNORE INTO vector_codes (vector_no, model_no, memory, user_no, role, code)
         SELECT v.vector_no, c.model_no, c.memory, c.user_no, c.role, c.code FROM vectors v
           JOIN vector_codes c ON c.memory = v.memory`,
      )
      .run();
  });
  const reads: (readonly number[])[] = [];
  for (let rest: readonly number[] | undefined = memoryNos; rest !== undefined;) {
    reads.push(rest);
    rest = (await compare(rest)).rest?.memoryNos;
  }
  // 8 codes × 4,000 queries × 1,536 bits count as 24,000 characters.
  expect(reads.map((rest) => rest.length)).toEqual([50, 8]);
});

test('where all queries have a vector, none is looked for by joining them', async () => {
  await using fixture = await openWithProvider();
  const { store } = fixture;
  addQueries(fixture, 10, WORDS);
  const modelNo = addVectors(fixture);
  const statements: string[] = [];
  const noted = {
    prepare: (sql: string) => {
      statements.push(sql);
      return store.prepare(sql);
    },
  } as Store;
  const missing = () => listUnembeddedQueries(noted, modelNo, 256);
  expect(missing()).toEqual([]);
  expect(statements.filter((sql) => sql.includes('JOIN'))).toEqual([]);
  addQueries(fixture, 1, 'ferry', `'{}'`, 'more');
  expect(missing()).toEqual([{ queryNo: 11, query: 'ferry1' }]);
  expect(listUnembeddedQueries(noted, modelNo + 1, 256)).toHaveLength(11);
});

test('of many queries that are compared, few keep their meter', async () => {
  await using fixture = await openWithProvider();
  addQueries(fixture, 600, WORDS);
  const asked = { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS };
  const { matches } = await compareIndexed(contextOf(fixture), asked);
  expect(matches).toHaveLength(600);
  expect(countMeters(fixture.batch.open().store)).toBe(256);
});

test('an index that was forgotten, with its vectors, is made anew and finds the same', async () => {
  await using fixture = await openWithProvider();
  addQueries(fixture, 40, WORDS);
  addQueries(fixture, 40, 'unrelated ', `'{}'`, 'near');
  addVectors(fixture);
  const context = contextOf(fixture);
  const asked = { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS };
  const before = await compareIndexed(context, asked);
  const { store } = fixture.batch.open();
  const { index } = store.read(() => indexOf(store, false));
  expect(index.bytes).toBeGreaterThan(40_000);
  forgetIndex(store);
  forgetNeighbours(store);
  expect(store.read(() => indexOf(store, true)).index).not.toBe(index);
  expect(await compareIndexed(context, asked)).toEqual(before);
  index.remove([...index.queries.keys()]);
  expect(index.bytes).toBe(0);
});

test.each([
  { threads: 1, isKept: 240_000_000, isDropped: 250_000_000 },
  { threads: 2, isKept: 115_000_000, isDropped: 125_000_000 },
  { threads: 64, isKept: 55_000_000, isDropped: 60_000_000 },
])('the index of a tenant that takes too much is dropped while another is used', async (expected) => {
  const { threads, isKept, isDropped } = expected;
  await using large = await openWithProvider();
  await using other = await openWithProvider();
  const indexOfLarge = () => {
    const { store } = large.batch.open();
    return store.read(() => indexOf(store, false)).index;
  };
  for (const fixture of [large, other]) addQueries(fixture, 10, WORDS);
  const compare = (fixture: typeof large) =>
    compareIndexed(
      { ...contextOf(fixture), threads },
      { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS },
    );
  const { matches } = await compare(large);
  const kept = indexOfLarge();
  indexes.note(large.batch.open().store, isKept, Infinity);
  await compare(other);
  expect(indexOfLarge()).toBe(kept);
  indexes.note(large.batch.open().store, isDropped, Infinity);
  await compare(other);
  expect(indexOfLarge()).not.toBe(kept);
  expect(await compare(large)).toMatchObject({ matches });
});

test('the filters of queries, a statement each, end a read', async () => {
  await using fixture = await openWithProvider();
  addQueries(fixture, 1_000, WORDS, `'{"eventFrom":-' || n || '}'`);
  const asked = { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS };
  const { matches, rest } = await compareIndexed(contextOf(fixture), asked);
  expect(matches.length).toBeGreaterThan(100);
  expect(matches.length).toBeLessThan(500);
  expect(rest).toEqual({ memoryNos: [fixture.memoryNo], afterQuery: matches.at(-1)!.queryNo });
});

test('many queries are indexed in several reads, and later ones only by what changed', async () => {
  await using fixture = await openWithProvider();
  const characters = Math.ceil(80_000 / WORDS.length);
  addQueries(fixture, 3 * characters, WORDS);
  addVectors(fixture);
  const prepared: string[] = [];
  const context = contextOf(fixture);
  const { store } = fixture.batch.open();
  const noted = Object.assign(Object.create(store) as Store, {
    prepare: (sql: string) => {
      prepared.push(sql);
      return store.prepare(sql);
    },
  });
  const watched = { ...context, open: () => ({ ...context.open(), store: noted }) };
  const asked = { memoryNos: [fixture.memoryNo], afterQuery: 0, defaults: DEFAULTS };
  const read = async () => {
    prepared.length = 0;
    const { rest } = await compareStanding(watched, asked);
    const texts = prepared.filter((sql) => sql.includes('query, filter, min_score AS minScore')).length;
    return { isIndexing: rest?.afterQuery === 0, texts };
  };
  const reads = [await read(), await read(), await read(), await read()];
  expect(reads.slice(0, 3).every(({ isIndexing }) => isIndexing)).toBe(true);
  for (const { texts } of reads) expect(texts).toBeLessThan(64);
  while ((await read()).isIndexing);
  addQueries(fixture, 1, WORDS, `'{}'`, 'more');
  expect(await read()).toEqual({ isIndexing: false, texts: 1 });
  store.write(() => deleteStandingQuery(store, 'q1'));
  expect(await read()).toEqual({ isIndexing: false, texts: 0 });
  // Beside many other tenants a file may be closed before all is indexed.
  const reopened = async (steps: number) => {
    const other = Object.create(store) as Store;
    const { rest } = await compareStanding(
      { ...context, open: () => ({ ...context.open(), store: other }) },
      { ...asked, steps },
    );
    return rest?.steps;
  };
  expect([await reopened(299), await reopened(300)]).toEqual([300, undefined]);
});

test.each([1, 2, 3])('queries that come, go and change are compared as if they were read anew (%i)', async (seed) => {
  await using fixture = await openWithProvider();
  await fixture.add({ content: 'Der Hafen und die Fähren: captain, compass and anchor.', userId: 'ben' });
  await fixture.drain();
  const { store } = fixture.batch.open();
  const random = createRandom(seed);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  const words = [...WORDS.split(' '), 'Which', 'is the', 'Wo liegen die', 'Fähren', 'Häfen', 'où est', 'nothing', '?'];
  const text = () => Array.from({ length: 1 + Math.floor(5 * random()) }, () => pick(words)).join(' ');
  const modelNo = fixture.get<number>('SELECT model_no FROM vector_codes LIMIT 1');
  const numbers = () => fixture.all<{ no: number }>('SELECT query_no AS no FROM standing_queries').map(({ no }) => no);
  let made = 0;
  const insert = () => {
    const scope = { userId: pick([undefined, 'ana', 'ben']), minScore: pick([undefined, 0.1, 0.5]) };
    const query = { query: text(), filter: pick([{}, { eventFrom: -made }]), given: {}, ...scope };
    insertStandingQuery(store, query, { id: `q${(made += 1)}`, writerNo: null, now: 0 });
  };
  const remove = (queryNo: number) => store.prepare('DELETE FROM standing_queries WHERE query_no = ?').run(queryNo);
  const embed = () => {
    const vectors = listUnembeddedQueries(store, modelNo, Math.ceil(4 * random())).map(({ queryNo }) => {
      const noise = 3 * random();
      const of = (_: unknown, at: number) => Math.sin(at + 1) + noise * (random() - 0.5);
      return { queryNo, embedding: Float32Array.from({ length: DIMENSIONS }, of) };
    });
    putStandingVectors(store, modelNo, vectors);
  };
  const steps = [
    ...[insert, insert, insert, embed, embed],
    () => numbers().length > 0 && remove(pick(numbers())),
    () => numbers().length > 0 && putStandingTexts(store, pick(numbers()), { query: text(), filter: {}, given: {} }),
    () => random() < 0.1 && numbers().forEach(remove),
  ];
  const context = contextOf(fixture);
  const memoryNos = fixture.all<{ no: number }>('SELECT seq AS no FROM memories').map(({ no }) => no);
  const asked = { memoryNos, afterQuery: 0, defaults: { minScore: 0.2 } as RetrievalOptions };
  let matched = 0;
  for (let round = 0; round < 60; round += 1) {
    store.write(() => Array.from({ length: 1 + Math.floor(5 * random()) }, () => pick(steps)()));
    // What a connection knows is kept by its store: another object knows nothing.
    const anew = { ...context, open: () => ({ ...context.open(), store: Object.create(store) as Store }) };
    const changed = await compareStanding(context, asked);
    expect(changed).toEqual(await compareStanding(anew, asked));
    matched += changed.matches.length;
  }
  expect(matched).toBeGreaterThan(100);
});
