import { expect, onTestFinished, test } from 'vitest';
import { findReembed } from '../../../src/engine/store/reembed.ts';
import type { NewEvalSet } from '../../../src/engine/types.ts';
import { openTestEngine, type ManualClock, type TestEngine } from '../../support/engine-fixture.ts';

const PLACES = ['Oslo', 'Bergen', 'Tromso', 'Bodo', 'Molde', 'Alta', 'Vadso', 'Narvik', 'Larvik', 'Skien'];
const GOOD: NewEvalSet = {
  name: 'quays',
  guard: true,
  items: PLACES.map((place) => ({ query: `Where is the quay of ${place}?`, k: 1, expected: [`quay of ${place}`] })),
};

/** Opens a file whose queries go by vectors alone. A worker embeds questions by a model that is deaf, or not. */
async function open(
  dimensions: string,
  {
    file,
    clock,
    isDeaf = false,
  }: { readonly file?: string; readonly clock?: ManualClock; readonly isDeaf?: boolean } = {},
): Promise<TestEngine> {
  const fixture = await openTestEngine({
    settings: { OM_VEC_DIM: dimensions },
    ...(file === undefined ? {} : { file }),
    ...(clock === undefined ? {} : { clock }),
    embedder: (embedder) => ({
      ...embedder,
      embed: (texts, options) =>
        embedder.embed(isDeaf && options.purpose === 'query' ? texts.map(() => 'a cat on a sofa') : texts, options),
    }),
  });
  onTestFinished(() => fixture.close());
  return fixture;
}

/** A file of 256 dimensions with a guarded set. */
async function guarded(set: Partial<NewEvalSet> = {}) {
  const before = await open('256');
  for (const place of PLACES) await before.add({ content: `The quay of ${place} lies beside the market of ${place}` });
  for (let cat = 0; cat < 60; cat++) await before.add({ content: `A cat of number ${cat} sleeps on a sofa` });
  await before.drain();
  await before.tenant.putRetrievalDefaults({ profile: 'fusion', vectorWeight: 1, minScore: 0, rerank: 'none' });
  await before.tenant.putEval({ ...GOOD, ...set });
  expect((await before.tenant.runEval('quays')).run.recall).toBe(1);
  const { file, clock } = before;
  await before.close();
  return { file, clock };
}

async function finish(fixture: TestEngine) {
  for (let step = 0; step < 2_000; step++) {
    const status = await fixture.tenant.reembedStatus();
    if (status.state === 'current' || status.state === 'failed') return status;
    await fixture.runBatch(16);
    fixture.clock.advance(200);
  }
  throw new Error('the change of the model never ends');
}

test('a model that lowers a guarded set does not go live, until somebody insists', async () => {
  const changed = await open('512', { ...(await guarded()), isDeaf: true });
  await changed.tenant.startReembed();
  const refused = await finish(changed);
  expect(refused).toMatchObject({ state: 'failed', phase: 'embed', live: { dimensions: 256 } });
  expect(refused.error).toMatch(/"quays" \(recall 1\.000 → 0\.\d00\).*cairn reembed --force/);
  expect((await changed.tenant.runEval('quays')).run.recall).toBe(1);

  // Asked again it is refused again, and nothing is embedded twice.
  const vectors = changed.get<number>('SELECT max(vector_no) FROM vectors');
  await changed.tenant.startReembed();
  expect(await finish(changed)).toMatchObject({ state: 'failed' });
  expect(changed.get<number>('SELECT max(vector_no) FROM vectors')).toBe(vectors);

  await changed.tenant.startReembed({ force: true });
  expect(await finish(changed)).toMatchObject({ state: 'current', live: { dimensions: 512 } });
});

test('nor does a model that brings forbidden hits', async () => {
  const items = GOOD.items.map((item) => ({ ...item, forbidden: ['sofa'] }));
  const changed = await open('512', { ...(await guarded({ items })), isDeaf: true });
  await changed.tenant.startReembed();
  const refused = await finish(changed);
  expect(refused).toMatchObject({ state: 'failed', live: { dimensions: 256 } });
  expect(refused.error).toMatch(/with forbidden hits 0 → \d/);
});

test('a model that holds the set goes live by itself, and a set without guard holds up none', async () => {
  const good = await open('512', await guarded());
  await good.tenant.startReembed();
  expect(await finish(good)).toMatchObject({ state: 'current', live: { dimensions: 512 } });

  const unguarded = await open('512', { ...(await guarded({ guard: false })), isDeaf: true });
  await unguarded.tenant.startReembed();
  expect(await finish(unguarded)).toMatchObject({ state: 'current', live: { dimensions: 512 } });
});

test('the trial goes on where another process left it, and begins anew after a change of the set', async () => {
  const made = await guarded();
  const changed = await open('512', { ...made, isDeaf: true });
  await changed.tenant.startReembed();
  for (let step = 0; findReembed(changed.store)?.trial === undefined; step++) {
    expect(step).toBeLessThan(2_000);
    if ((await changed.tenant.reembedStatus()).state === 'failed') break;
    await changed.runBatch(16);
    changed.clock.advance(200);
  }
  await changed.tenant.putEval({ ...GOOD, items: GOOD.items.map((item) => ({ ...item, expected: ['cat'] })) });
  await changed.close();
  // By the live model no question finds a cat, so the deaf one lowers nothing.
  const again = await open('512', { ...made, isDeaf: true });
  await again.tenant.startReembed();
  expect(await finish(again)).toMatchObject({ state: 'current', live: { dimensions: 512 } });
});
