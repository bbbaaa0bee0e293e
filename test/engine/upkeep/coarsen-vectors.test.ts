import { expect, onTestFinished, test } from 'vitest';
import { createTexts } from '../../../bench/load.ts';
import type { VectorPrecision } from '../../../src/engine/ports.ts';
import { cosine } from '../../../src/engine/store/vector-encoding.ts';
import { coarsenVectors } from '../../../src/engine/upkeep/coarsen-vectors.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { createManualClock, expectNoOrphans, openTestEngine, START } from '../../support/engine-fixture.ts';
import { startFakeProvider } from '../../support/fake-provider.ts';
import { storeAsBefore } from '../../support/store-as-before.ts';
import { unpackFixture } from '../../support/schema-fixture.ts';
import { storedVectors } from '../../support/stored-vectors.ts';

const LONG = 'The orchard has apples, pears and plums, and somebody has to pick all of them by hand. '
  .repeat(60)
  .trim();

const [QUESTION = ''] = createTexts(1, 9);

/** A file whose vectors and copies are as a version before this schema left them. */
async function openOld(precision: VectorPrecision) {
  const provider = await startFakeProvider({ dimensions: 256 });
  onTestFinished(() => provider.close());
  const settings = {
    OM_EMBEDDINGS: 'openai',
    OM_OPENAI_BASE_URL: provider.url,
    OM_VEC_DIM: '256',
    OM_EMBED_LINGER_MS: '0',
  };
  const old = await openTestEngine({ settings: { ...settings, OM_VECTOR_PRECISION: 'float32' } });
  await old.add({ content: LONG });
  for (const content of createTexts(30, 5)) await old.add({ content });
  await old.drain();
  storeAsBefore(old.store);
  const fixture = await openTestEngine({
    settings: { ...settings, OM_VECTOR_PRECISION: precision },
    file: old.file,
    clock: old.clock,
  });
  onTestFinished(() => fixture.close());
  onTestFinished(() => old.close());
  return { fixture, old, provider };
}

const precisions = (fixture: Awaited<ReturnType<typeof openOld>>['fixture']) =>
  fixture.all('SELECT precision, count(*) AS n, sum(octet_length(embedding)) AS bytes FROM vectors GROUP BY precision');

test.each([
  ['int8', 3, 256 + 3 * 24],
  ['float16', 2, 512],
  ['float32', 1, 1_024],
] as const)('old vectors become %s, and their copies go', async (precision, number, length) => {
  const { fixture, provider } = await openOld(precision);
  const before = storedVectors(fixture.store.db);
  expect(before.length).toBeGreaterThan(31);
  expect(fixture.get('SELECT count(*) FROM cached_copies')).toBeGreaterThan(30);
  const ask = async () => {
    const { hits } = await fixture.tenant.query({ query: QUESTION, k: 40, filter: {}, reinforce: false });
    return new Map(hits.map(({ memory, score }) => [memory.id, score]));
  };
  const scoresBefore = await ask();
  await coarsenVectors(fixture.maintenance);
  expect(precisions(fixture)).toEqual([{ precision: number, n: before.length, bytes: 0 }]);
  expect(fixture.get('SELECT count(*) FROM cached_copies')).toBe(0);
  for (const [place, after] of storedVectors(fixture.store.db).entries()) {
    expect(after.vectorNo).toBe(before[place]!.vectorNo);
    expect(after.bytes).toHaveLength(length);
    expect(cosine(after.embedding, before[place]!.embedding)).toBeGreaterThan(0.9999);
  }
  const scores = await ask();
  expect([...scores.keys()].sort()).toEqual([...scoresBefore.keys()].sort());
  for (const [id, score] of scores) expect(Math.abs(score - scoresBefore.get(id)!)).toBeLessThan(0.005);
  expectNoOrphans(fixture.store);

  // A text that was paid for is not paid for again.
  const paid = provider.texts;
  await fixture.add({ content: LONG, userId: 'ben' });
  await fixture.drain();
  expect(provider.texts).toBe(paid);
});

test('a change that is broken off goes on where it ended, and a vector that is deleted meanwhile stays deleted', async () => {
  const { fixture } = await openOld('int8');
  const total = fixture.get<number>('SELECT count(*) FROM vectors');
  const { store, open } = { store: fixture.store, open: fixture.maintenance.open };
  let slices = 0;
  const dying = () => {
    // Every few calls begin a slice.
    if ((slices += 1) > 8) throw new Error('killed');
    return open();
  };
  const bySingles = { ...fixture.maintenance, open: dying };
  store.prepare('UPDATE vectors SET vector_no = vector_no + 50000 WHERE vector_no > ?').run(total / 2);
  store.prepare('UPDATE vector_codes SET vector_no = vector_no + 50000 WHERE vector_no > ?').run(total / 2);
  await expect(coarsenVectors(bySingles)).rejects.toThrow('killed');
  const [coarse, fine] = [2, 0].map((number) =>
    fixture.get<number>('SELECT count(*) FROM vectors WHERE precision > ? - 1 AND precision < ? + 2', number, number),
  );
  expect(coarse).toBeGreaterThan(0);
  expect(fine).toBeGreaterThan(0);
  const { id } = fixture.all<{ id: string }>('SELECT id FROM memories ORDER BY seq DESC')[0]!;
  await fixture.tenant.deleteMemory(id);
  await coarsenVectors(fixture.maintenance);
  expect(precisions(fixture)).toEqual([{ precision: 3, n: total - 1, bytes: 0 }]);
  expectNoOrphans(store);
});

test('a finer setting leaves what is coarse, and what it brought is coarsened after a change back', async () => {
  const { fixture, old } = await openOld('int8');
  await runDueSchedules(fixture.maintenance);
  const coarse = fixture.get<number>('SELECT count(*) FROM vectors');
  await old.add({ content: 'The first boat in float32.' });
  await old.drain();
  old.clock.advance(3_600_000);
  await runDueSchedules(old.maintenance);
  expect(precisions(old)).toMatchObject([
    { precision: 1, n: 1 },
    { precision: 3, n: coarse },
  ]);
  fixture.clock.advance(3_600_000);
  await runDueSchedules(fixture.maintenance);
  expect(precisions(fixture)).toMatchObject([{ precision: 3, n: coarse + 1 }]);
});

test('a file of the first schema changes over, but for vectors of the offline embedder', async () => {
  await using fixture = await openTestEngine({
    file: unpackFixture(1),
    settings: { OM_VECTOR_PRECISION: 'int8' },
    clock: createManualClock(START + 3_600_000),
  });
  const before = storedVectors(fixture.store.db);
  await runDueSchedules(fixture.maintenance);
  const after = storedVectors(fixture.store.db);
  expect(after.map(({ vectorNo }) => vectorNo)).toEqual(before.map(({ vectorNo }) => vectorNo));
  for (const [place, { model, bytes, embedding }] of after.entries()) {
    const old = before[place]!;
    if (model !== 'exact') expect(bytes).toEqual(old.bytes);
    else expect([bytes.length, cosine(embedding, old.embedding) > 0.9999]).toEqual([16 + 3 * 2, true]);
  }
  expect(after.filter(({ model }) => model === 'exact')).toHaveLength(1);
  expectNoOrphans(fixture.store);
});

test('a delete in the midst of the change leaves no byte of a vector in the file', async () => {
  const { fixture } = await openOld('int8');
  const { id, memoryNo } = {
    id: fixture.all<{ id: string }>('SELECT id FROM memories WHERE seq = 2')[0]!.id,
    memoryNo: 2,
  };
  const { bytes } = storedVectors(fixture.store.db).find(({ memory }) => memory === memoryNo)!;
  const copies = () => fixture.get<number>('SELECT count(*) FROM cached_copies');
  const before = copies();
  await fixture.tenant.deleteMemory(id);
  expect(copies()).toBe(before - 1);
  const left = fixture.all<{ embedding: Buffer }>(
    'SELECT embedding FROM vectors UNION ALL SELECT embedding FROM cached_copies',
  );
  expect(left.some(({ embedding }) => embedding.equals(bytes))).toBe(false);
});
