import { InMemoryStore, type Operation, type SearchItem } from '@langchain/langgraph-checkpoint';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CairnStore } from '../../src/clients/langgraph/index.ts';
import { jsonValue } from '../support/json-values.ts';
import { ADMIN_KEY, startApi, type TestApi } from '../support/start-api.ts';
import { tempFolder } from '../support/temp-folder.ts';

let api: TestApi;
let store: CairnStore;
beforeAll(async () => {
  api = await startApi({ folder: tempFolder(), settings: { OM_EMBEDDINGS: 'none' } });
  store = new CairnStore({ url: api.url, apiKey: ADMIN_KEY });
});
afterAll(() => api.stop());

const label = fc.constantFrom('a', 'ab', 'b', 'c');
const namespace = fc.array(label, { minLength: 1, maxLength: 3 });
const key = fc.constantFrom('k', 'l', 'm/n', 'ключ');
const scalar = fc.oneof(fc.constantFrom(0, 1, 2, -1.5, 'x', '', 'ü', true, false, null));
const value = fc.record({ n: fc.integer({ min: -3, max: 3 }), t: scalar, deep: jsonValue() }, { requiredKeys: [] });
const number = fc.integer({ min: -3, max: 3 });
const condition = fc.oneof(
  fc.record({ t: scalar }),
  fc.record({ n: number }),
  fc.record({ n: fc.record({ $gte: number, $lt: number }, { requiredKeys: [] }) }),
  fc.record({ n: fc.record({ $gt: number }) }),
  fc.record({ n: fc.record({ $lte: number, $ne: number }) }),
  fc.record({ t: fc.record({ $in: fc.array(fc.constantFrom('x', 1, true), { maxLength: 3 }) }) }),
  fc.record({ t: fc.record({ $nin: fc.array(fc.constantFrom('x', 1, true), { maxLength: 3 }) }), n: number }),
);
const pattern = fc.array(fc.oneof(label, fc.constant('*')), { minLength: 1, maxLength: 2 });
const matchType = fc.constantFrom('prefix' as const, 'suffix' as const);
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ namespace, key, value }) },
  { weight: 1, arbitrary: fc.record({ namespace, key, value: fc.constant(null) }) },
  { weight: 2, arbitrary: fc.record({ namespace, key }) },
  {
    weight: 2,
    arbitrary: fc.record({
      namespacePrefix: fc.array(label, { maxLength: 2 }),
      filter: fc.option(condition, { nil: undefined }),
      limit: fc.constant(1_000),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      matchConditions: fc.array(fc.record({ matchType, path: pattern }), { maxLength: 3 }),
      maxDepth: fc.option(fc.integer({ min: 2, max: 4 }), { nil: undefined }),
      limit: fc.constant(1_000),
      offset: fc.constant(0),
    }),
  },
) as fc.Arbitrary<Operation>;

/** Puts an operation below a root of its own, so that all runs share one server. */
function below(root: string, op: Operation): Operation {
  if ('namespacePrefix' in op) return { ...op, namespacePrefix: [root, ...op.namespacePrefix] };
  if ('namespace' in op) return { ...op, namespace: [root, ...op.namespace] };
  const ofRoot = { matchType: 'prefix' as const, path: [root] };
  const conditions = (op.matchConditions ?? []).map((condition) =>
    condition.matchType === 'prefix' ? { ...condition, path: [root, ...condition.path] } : condition,
  );
  return { ...op, matchConditions: [ofRoot, ...conditions] };
}

/**
 * What InMemoryStore answers, with its gets as they were before the batch: it returns its own objects, in which a put
 * of the same batch shows.
 */
async function referenceBatch(reference: InMemoryStore, operations: readonly Operation[]): Promise<unknown[]> {
  const isGet = (op: Operation) => 'key' in op && !('value' in op);
  const before = structuredClone(await reference.batch(operations.filter(isGet)));
  const results: unknown[] = await reference.batch(structuredClone([...operations]));
  return results.map((result, at) => (isGet(operations[at]!) ? before.shift() : result));
}

/** What a result says, without times and the order of lists, in which stores differ. */
function essence(result: unknown): unknown {
  if (result === null || result === undefined) return null;
  if (!Array.isArray(result)) return placeAndValue(result as SearchItem);
  const entries = result as readonly (SearchItem | string[])[];
  return entries.map((entry) => JSON.stringify(Array.isArray(entry) ? entry : placeAndValue(entry))).sort();
}
const placeAndValue = ({ namespace: labels, key: name, value: held }: SearchItem) => ({ labels, name, held });
const asJson = (result: unknown) => JSON.parse(JSON.stringify(essence(result))) as unknown;

test('InMemoryStore and CairnStore answer 1,000 random batches alike', async () => {
  let runs = 0;
  let batches = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(operation, { minLength: 1, maxLength: 6 }), { minLength: 20, maxLength: 20 }),
      async (sequence) => {
        const root = `run${(runs += 1)}`;
        const reference = new InMemoryStore();
        for (const batch of sequence) {
          const operations = batch.map((op) => below(root, op));
          const [expected, found] = await Promise.all([referenceBatch(reference, operations), store.batch(operations)]);
          batches += 1;
          // InMemoryStore keeps a namespace that has lost its items.
          const compared = (results: readonly unknown[]) =>
            results.map((result, at) => ('matchConditions' in operations[at]! ? 'namespaces' : asJson(result)));
          expect(compared(found)).toEqual(compared(expected));
        }
        const all = await reference.search([root], { limit: 1_000 });
        const spaces = new Set(all.map(({ namespace: labels }) => labels.join('.')));
        const listed = await store.listNamespaces({ prefix: [root], limit: 1_000 });
        expect(listed.map((labels) => labels.join('.')).sort()).toEqual([...spaces].sort());
        const conditions = sequence.flat().filter((op) => 'matchConditions' in op);
        for (const op of conditions.slice(0, 3)) {
          const fresh = new InMemoryStore();
          await fresh.batch(
            all.map(({ namespace: labels, key: name, value: held }) => ({
              namespace: labels,
              key: name,
              value: held,
            })),
          );
          const asked = below(root, op);
          expect(asJson((await store.batch([asked]))[0])).toEqual(asJson((await fresh.batch([asked]))[0]));
        }
      },
    ),
    { numRuns: 50, endOnFailure: true },
  );
  expect(batches).toBe(1_000);
});

test('reads see the state before their batch, and the last put of a key wins', async () => {
  const place = { namespace: ['order'], key: 'k' };
  await store.put(['order'], 'k', { v: 0 });
  const results = await store.batch([
    { ...place, value: { v: 1 } },
    place,
    { ...place, value: null },
    { namespacePrefix: ['order'] },
    { ...place, value: { v: 2 } },
  ]);
  expect(results[0]).toBeUndefined();
  expect(results[1]).toMatchObject({ value: { v: 0 } });
  expect(results[3]).toMatchObject([{ value: { v: 0 } }]);
  const read = (await store.get(['order'], 'k'))!;
  expect(read.value).toEqual({ v: 2 });
  expect(read.createdAt).toBeInstanceOf(Date);
  expect(read.updatedAt.getTime()).toBeGreaterThanOrEqual(read.createdAt.getTime());
});

test('namespaces are refused as by the stores of LangGraph', async () => {
  for (const labels of [[], ['a', ''], ['a.b'], ['a:b'], ['langgraph', 'x']])
    await expect(store.put(labels, 'k', {})).rejects.toThrow(/namespace/i);
  await expect(store.get([], 'k')).rejects.toThrow(/empty/);
  expect(await store.search([], { limit: 1 })).toHaveLength(1);
  expect(await store.get(['langgraph'], 'k')).toBeNull();
});

test('a page of many items or large values is read to its end', async () => {
  const text = 'x'.repeat(200_000);
  await store.batch(
    Array.from({ length: 30 }, (_, at) => ({ namespace: ['big'], key: `k${at}`, value: { text, at } })),
  );
  const all = await store.search(['big'], { limit: 30 });
  expect(all.map(({ value: { at } }) => at as number).sort((a, b) => a - b)).toEqual(all.map((_, at) => at));
  expect(all).toHaveLength(30);
  expect(await store.search(['big'], { limit: 5, offset: 28 })).toHaveLength(2);
  expect(await store.search(['big'], { limit: 0 })).toEqual([]);
});

test('stores of two users, and a time to live', async () => {
  const [ana, ben] = ['ana', 'ben'].map(
    (userId) => new CairnStore({ url: api.url, apiKey: ADMIN_KEY, userId, ttl: 0.0005 }),
  );
  await ana!.put(['own'], 'k', { of: 'ana' });
  expect(await ben!.get(['own'], 'k')).toBeNull();
  expect(await ben!.listNamespaces()).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(await ana!.get(['own'], 'k')).toBeNull();
});

test('a refusal names what was wrong, and a server without an answer is an error', async () => {
  await expect(store.put(['a'], 'k'.repeat(300), {})).rejects.toThrow(/PUT \/store\/items: 400: key: /);
  const locked = new CairnStore({ url: `${api.url}/`, apiKey: 'wrong-key' });
  await expect(locked.get(['a'], 'k')).rejects.toMatchObject({ status: 401, code: 'unauthenticated' });
  const gone = new CairnStore({ url: 'http://127.0.0.1:1' });
  await expect(gone.get(['a'], 'k')).rejects.toThrow();
});
