import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/engine/config.ts';
import { sectorsFromBits } from '../../../src/engine/dynamics.ts';
import { createProviderHealth } from '../../../src/engine/providers/provider-health.ts';
import { runBatch } from '../../../src/engine/batches/run-batch.ts';
import { findLiveModels, listStrayModels, modelOfSector } from '../../../src/engine/store/live-model.ts';
import { cosine } from '../../../src/engine/store/vector-encoding.ts';
import { STORED_BYTES } from '../../../src/engine/store/vector-parts.ts';
import { SECTORS, type Sector } from '../../../src/engine/types.ts';
import { type FakeProvider, startFakeProvider } from '../../support/fake-provider.ts';
import {
  createManualClock,
  expectNoOrphans,
  openTestEngine,
  type TestEngine,
  type TestEngineOptions,
} from '../../support/engine-fixture.ts';
import { storedVectors, type StoredVector } from '../../support/stored-vectors.ts';

/**
 * One has other dimensions than the provider's own model, the other has the same: a mix-up of these two would not be
 * refused by any check.
 */
const MODELS = { episodes: 512, feelings: 256 };
const MODEL_OF: Readonly<Record<Sector, string>> = {
  episodic: 'episodes',
  semantic: 'own',
  procedural: 'own',
  emotional: 'feelings',
  reflective: 'own',
};
const ADVANCED = {
  OM_EMBED_MODE: 'advanced',
  OM_EMBED_MODEL_EPISODIC: 'episodes@512',
  OM_EMBED_MODEL_EMOTIONAL: 'feelings',
};

/** Texts with near neighbours among them, in several sectors and some in two; one is of several windows. */
const TEXTS = [
  ...Array.from({ length: 36 }, (_, i) => {
    const [subject, place] = [['the ferry', 'the tram'][i % 2], ['Oslo', 'Bergen', 'Tromso'][i % 3]];
    const forms = [
      `I took ${subject} to ${place} yesterday with ${i} others`,
      `${subject} to ${place} leaves from quay ${i % 7}`,
      `How to board ${subject} in ${place}: first buy ticket ${i}, then queue`,
      `I was so happy on ${subject} near ${place} that day ${i}`,
    ];
    return forms[i % 4]!;
  }),
  `I took the slow ferry to Oslo yesterday. ${'The sea was grey and the wind came from the north. '.repeat(80)}`,
];

test('a text has its vectors once by each model of its sectors, and by no other', async () => {
  const { fixture, provider } = await filled();
  expectVectorsBySector(fixture);
  expect(fixture.get<number>('SELECT count(DISTINCT model_no) AS n FROM vectors')).toBe(3);
  expect(fixture.get<number>('SELECT max(window_no) AS n FROM vectors')).toBeGreaterThan(0);
  expectNoOrphans(fixture.store);
  await expectVectorsOf(fixture, provider);
});

test.each(['true', 'false'])(
  'a waypoint is measured by the model of where it begins, parallel %s',
  async (parallel) => {
    const { fixture } = await filled({ OM_ADV_EMBED_PARALLEL: parallel });
    const edges = fixture.all<{ src: number; dst: number; similarity: number }>(
      'SELECT src, dst, similarity FROM edges WHERE automatic = 1',
    );
    expect(new Set(edges.map(({ src }) => MODEL_OF[sectorsOf(fixture, src)[0]!])).size).toBe(3);
    // None is nearer than the one it leads to, of those that were there before.
    const nearest = fixture.all<{ src: number; similarity: number }>(
      'SELECT src, max(similarity) AS similarity FROM edges WHERE automatic = 1 GROUP BY src',
    );
    const memoryNos = fixture
      .all<{ memoryNo: number }>('SELECT seq AS memoryNo FROM memories')
      .map(({ memoryNo }) => memoryNo);
    for (const { src, similarity } of nearest) {
      const model = MODEL_OF[sectorsOf(fixture, src)[0]!];
      for (const other of memoryNos.filter((memoryNo) => memoryNo < src)) {
        const vector = whole(fixture, other, model);
        if (vector !== undefined)
          expect(cosine(whole(fixture, src, model)!, vector)).toBeLessThanOrEqual(similarity + 1e-4);
      }
    }
    for (const { src, dst, similarity } of edges) {
      const model = MODEL_OF[sectorsOf(fixture, src)[0]!];
      const [from, to] = [whole(fixture, src, model), whole(fixture, dst, model)];
      expect(to, `memory ${dst} has a vector by ${model}`).toBeDefined();
      expect(similarity).toBeCloseTo(cosine(from!, to!), 4);
    }
  },
);

test('a query asks each model once and compares within it', async () => {
  const { fixture, provider } = await filled();
  const query = { query: 'happy on the ferry to Oslo yesterday', k: 30, filter: {}, explain: true, minScore: 0 };
  const before = provider.calls.length;
  const { hits, degraded } = await fixture.tenant.query(query);
  const asked = provider.calls.slice(before);
  expect(asked.map(({ body }) => body.model).sort()).toEqual(['episodes', 'feelings', 'own']);
  expect(asked.map(({ texts }) => texts)).toEqual([[query.query], [query.query], [query.query]]);
  expect(degraded).toBe(false);
  await fixture.tenant.query(query);
  expect(provider.calls).toHaveLength(before + 3);
  const found = hits.filter(({ explain }) => explain!.dense !== null);
  const models = new Set<string>();
  for (const { memory, explain } of found) {
    const memoryNo = fixture.memoryNoOf(memory.id);
    const measured = await Promise.all(
      memory.sectors.map(async (sector) => {
        const model = MODEL_OF[sector];
        const asVector = await provider.vectorOf(model, query.query);
        return { model, similarity: cosine(asVector, vectorAt(fixture, memoryNo, model, explain!.dense!.window)!) };
      }),
    );
    const by = measured.filter(({ similarity }) => Math.abs(similarity - explain!.dense!.similarity) < 1e-4);
    expect(by.length, `the similarity of memory ${memoryNo} is one of its own models'`).toBeGreaterThan(0);
    by.forEach(({ model }) => models.add(model));
  }
  expect(models.size).toBe(3);
  for (const { memory } of hits) {
    const { cosine: measured } = (await fixture.tenant.explain(query, memory.id)) as { cosine: number | null };
    expect(measured).not.toBeNull();
  }
});

test('a model that fails costs its part: the others answer, and what it owes is embedded after it is back', async () => {
  const { fixture, provider } = await filled();
  provider.failModels(['episodes']);
  const { hits, degraded } = await fixture.tenant.query({
    query: 'the happy ferry that leaves from the quay',
    k: 30,
    filter: {},
    explain: true,
    minScore: 0,
  });
  expect(degraded).toBe(true);
  expect(hits.some(({ explain }) => explain!.dense !== null)).toBe(true);
  const owed = await fixture.add({ content: 'I met Ada in Narvik yesterday' });
  const free = await fixture.add({ content: 'The quay of Narvik is a place for ships' });
  for (let round = 0; round < 12; round++) {
    await fixture.runBatch();
    fixture.clock.advance(60_000);
  }
  expect((await fixture.tenant.getMemory(free.id)).state).toBe('ready');
  expect((await fixture.tenant.getMemory(owed.id)).state).toBe('queued');
  expect((await fixture.tenant.countJobs()).dead).toBe(0);
  expect(await breakersOf(fixture)).toEqual({ ...NO_BREAKER_OPEN, episodic: 1 });
  provider.failModels([]);
  // The breaker of the model lets one call through after a while.
  await expect
    .poll(() => work(fixture).then(async () => (await fixture.tenant.getMemory(owed.id)).state))
    .toBe('ready');
  expect(await breakersOf(fixture)).toEqual(NO_BREAKER_OPEN);
  expectVectorsBySector(fixture);
});

test('memories of a model that fails step aside: those of the others pass, however many wait before them', async () => {
  const provider = await startModels();
  const fixture = await open(provider, ADVANCED);
  const health = createProviderHealth();
  const work = () => runBatch({ ...fixture.batch, provider: health }, 16);
  provider.failModels(['episodes']);
  const addEpisode = (number: number) =>
    fixture.add({ content: `I took ferry ${number} yesterday`, metadata: { sector: 'episodic' } });
  const owed = [];
  for (let number = 0; number < 70; number++) owed.push(await addEpisode(number));
  const free = await fixture.add({ content: 'The quay is a place for ships', metadata: { sector: 'semantic' } });
  // 70 fill four batches, of which one is taken apart, and the clock stands still.
  for (let batch = 0; batch < 20; batch++) {
    expect((await work()).providerPauseMs).toBeNull();
    if ((await fixture.tenant.getMemory(free.id)).state === 'ready') break;
  }
  expect((await fixture.tenant.getMemory(free.id)).state).toBe('ready');
  expect(await fixture.tenant.countJobs()).toMatchObject({ done: 1, dead: 0 });

  // With none left that may answer, all work waits.
  provider.failModels(['episodes', 'own', 'feelings']);
  for (const sector of ['semantic', 'emotional'])
    await fixture.add({ content: `A quay that is ${sector}`, metadata: { sector } });
  expect((await work()).providerPauseMs).not.toBeNull();

  provider.failModels([]);
  for (let round = 0; (await fixture.tenant.countJobs()).done < owed.length + 3; round++) {
    expect(round).toBeLessThan(200);
    await work();
    fixture.clock.advance(30_000);
  }
  expectVectorsBySector(fixture);
});

const NO_BREAKER_OPEN = Object.fromEntries(SECTORS.map((sector) => [sector, 0]));

/** What the metrics of the API say of the breakers, by sector. */
async function breakersOf({ engine }: TestEngine): Promise<Record<string, number>> {
  const { values } = await engine.metrics.providerBreaker.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.sector), value]));
}

test('a PATCH of the sector embeds in what is missing, drops what is surplus and links anew', async () => {
  const { fixture, provider } = await filled();
  const { id, memoryNo } = fixture.get<{ id: string; memoryNo: number }>(
    `SELECT m.id, m.seq AS memoryNo FROM memories m JOIN memory_dynamics d USING (seq) WHERE d.sectors = 1 LIMIT 1`,
  );
  const before = provider.calls.length;
  for (const sector of ['emotional', 'semantic', 'episodic'] as const) {
    await fixture.tenant.patchMemory(id, { metadata: { sector } });
    await work(fixture);
    expect(sectorsOf(fixture, memoryNo)[0]).toBe(sector);
    expectVectorsBySector(fixture);
    expectNoOrphans(fixture.store);
  }
  const models = provider.calls.slice(before).map(({ body }) => body.model);
  expect(models).toContain('feelings');
  expect(new Set(models).size).toBe(models.length);
});

test('a delete reaches every model', async () => {
  const { fixture } = await filled();
  for (const { id } of fixture.all<{ id: string }>('SELECT id FROM memories')) await fixture.tenant.deleteMemory(id);
  expect(fixture.get('SELECT (SELECT count(*) FROM vectors) + (SELECT count(*) FROM vector_parts) AS n')).toBe(0);
  expectNoOrphans(fixture.store);
});

test('what a change of the sectors leaves over takes its cached texts along, so that a delete leaves none', async () => {
  const provider = await startModels();
  const { file, clock, close } = await fill(provider, {});
  await close();
  const changed = await open(provider, ADVANCED, { file, clock });
  await changed.tenant.startReembed();
  for (let round = 0; (await changed.tenant.reembedStatus()).state !== 'current'; round++) {
    expect(round).toBeLessThan(200);
    await work(changed);
  }
  expectVectorsBySector(changed);
  for (const { id } of changed.all<{ id: string }>('SELECT id FROM memories')) await changed.tenant.deleteMemory(id);
  expect(changed.get('SELECT (SELECT count(*) FROM vectors) + (SELECT count(*) FROM vector_parts) AS n')).toBe(0);
});

test('a change of the mode or of one sector is re-embedded and is as from the start', async () => {
  const provider = await startModels();
  const { file, clock, close } = await fill(provider, {});
  await close();
  const steps = [
    ADVANCED,
    { ...ADVANCED, OM_EMBED_MODEL_EPISODIC: 'feelings', OM_EMBED_MODEL_PROCEDURAL: 'episodes@512' },
    { OM_EMBED_MODE: 'advanced' },
  ];
  for (const settings of steps) {
    const changed = await open(provider, settings, { file, clock });
    const target = Object.keys(settings).length > 1;
    expect((await changed.tenant.reembedStatus()).state).toBe('needed');
    expect((await changed.tenant.embedding()).degraded).toBeNull();
    await changed.tenant.startReembed();
    const meanwhile = await changed.tenant.query({ query: 'the ferry to Oslo', k: 5, filter: {} });
    expect(meanwhile.hits.length).toBeGreaterThan(0);
    for (let round = 0; (await changed.tenant.reembedStatus()).state !== 'current'; round++) {
      expect(round).toBeLessThan(200);
      await work(changed);
    }
    expect(findLiveModels(changed.store)).toHaveLength(target ? SECTORS.length : 1);
    expect(
      listStrayModels(
        changed.store,
        findLiveModels(changed.store)!.map(({ modelNo }) => modelNo),
      ),
    ).toEqual([]);
    expectNoOrphans(changed.store);
    const fresh = await fill(provider, settings);
    expect(vectorsOf(changed)).toEqual(vectorsOf(fresh));
    expect(waypointsOf(changed)).toEqual(waypointsOf(fresh));
    await fresh.close();
    await changed.close();
  }
});

test('whatever the sectors and their models, no memory has a vector of another model', async () => {
  const provider = await startModels();
  const model = fc.constantFrom(undefined, 'episodes@512', 'feelings');
  await fc.assert(
    fc.asyncProperty(
      fc.array(model, { minLength: 5, maxLength: 5 }),
      fc.array(fc.tuple(fc.constantFrom(...TEXTS.slice(0, 8)), fc.constantFrom(...SECTORS)), {
        minLength: 1,
        maxLength: 6,
      }),
      async (models, memories) => {
        const settings = Object.fromEntries(
          SECTORS.flatMap((sector, place) =>
            models[place] === undefined ? [] : [[`OM_EMBED_MODEL_${sector.toUpperCase()}`, models[place]]],
          ),
        );
        const fixture = await open(provider, { OM_EMBED_MODE: 'advanced', ...settings });
        for (const [place, [text, sector]] of memories.entries()) {
          await fixture.add({ content: `${text}, note ${place}`, metadata: { sector } });
        }
        await work(fixture);
        expectVectorsBySector(fixture);
        await expectVectorsOf(fixture, provider);
        await fixture.close();
      },
    ),
    { numRuns: 8 },
  );
});

test('one by one, the next model of a memory is asked when the one before has answered', async () => {
  const provider = await startModels();
  const fixture = await open(provider, ADVANCED);
  await fixture.add({
    content: 'I took the ferry to Oslo yesterday and was so happy',
    metadata: { sector: 'episodic' },
  });
  const release = provider.hold();
  const first = provider.nextCall();
  const working = fixture.drain();
  await first;
  await new Promise(setImmediate);
  expect(provider.calls).toHaveLength(1);
  release();
  await working;
  expect(provider.calls).toHaveLength(2);
});

test('all at once, both are asked before either has answered', async () => {
  const provider = await startModels();
  const fixture = await open(provider, { ...ADVANCED, OM_ADV_EMBED_PARALLEL: 'true' });
  await fixture.add({
    content: 'I took the ferry to Oslo yesterday and was so happy',
    metadata: { sector: 'episodic' },
  });
  const release = provider.hold();
  const working = fixture.drain();
  await provider.nextCall();
  if (provider.calls.length < 2) await provider.nextCall();
  release();
  await working;
  expect(provider.calls).toHaveLength(2);
});

test('the start refuses what cannot be', () => {
  const refused = (settings: Record<string, string>) => {
    try {
      readConfig({ OM_EMBEDDINGS: 'openai', OPENAI_API_KEY: 'sk-test', OM_EMBED_MODE: 'advanced', ...settings });
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(refused({})).toBe('');
  expect(refused({ OM_EMBEDDINGS: 'synthetic' })).toContain('OM_EMBED_MODE=advanced: OM_EMBEDDINGS has to be');
  expect(refused({ OM_EMBEDDINGS: 'none' })).toContain('OM_EMBED_MODE=advanced');
  expect(refused({ OM_EMBED_MODE: 'simple', OM_EMBED_MODEL_SEMANTIC: 'other' })).toContain('OM_EMBED_MODEL_SEMANTIC');
  expect(refused({ OM_EMBED_MODEL_SEMANTIC: 'other@100' })).toContain('a multiple of 8');
  expect(refused({ OM_EMBED_MODEL_SEMANTIC: 'text-embedding-3-small@3072' })).toContain('makes at most 1536');
  expect(refused({ OM_EMBED_MODEL_SEMANTIC: 'text-embedding-3-large@3072' })).toBe('');
  expect(refused({ OM_EMBED_MODEL_SEMANTIC: '@512' })).toContain('model@dimensions');
});

async function filled(settings: Readonly<Record<string, string>> = {}) {
  const provider = await startModels();
  return { provider, fixture: await fill(provider, { ...ADVANCED, ...settings }) };
}

async function startModels(): Promise<FakeProvider> {
  const provider = await startFakeProvider({ dimensions: 256, models: MODELS });
  onTestFinished(() => provider.close());
  return provider;
}

async function fill(provider: FakeProvider, settings: Readonly<Record<string, string>>): Promise<TestEngine> {
  const fixture = await open(provider, settings);
  for (const content of TEXTS) await fixture.add({ content });
  await work(fixture);
  expect(fixture.get<number>(`SELECT count(*) AS n FROM memory_dynamics WHERE state <> 'ready'`)).toBe(0);
  return fixture;
}

async function open(
  provider: FakeProvider,
  settings: Readonly<Record<string, string>>,
  options: TestEngineOptions = {},
): Promise<TestEngine> {
  const fixture = await openTestEngine({
    clock: createManualClock(),
    ...options,
    settings: {
      // The texts of these tests are written for the patterns.
      OM_SECTOR_CLASSIFIER: 'patterns',
      OM_EMBEDDINGS: 'openai',
      OM_OPENAI_BASE_URL: provider.url,
      OM_OPENAI_MODEL: 'own',
      OM_EMBED_LINGER_MS: '0',
      ...settings,
    },
  });
  onTestFinished(() => fixture.close());
  return fixture;
}

async function work(fixture: TestEngine): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await fixture.drain();
    fixture.clock.advance(30_000);
  }
}

function sectorsOf(fixture: TestEngine, memoryNo: number): Sector[] {
  const row = fixture.get<{ sectors: number; primary_sector: Sector }>(
    'SELECT sectors, primary_sector FROM memory_dynamics WHERE seq = ?',
    memoryNo,
  );
  return sectorsFromBits(row.sectors, row.primary_sector);
}

/** By the file's own word of which model embeds which sector. */
function expectVectorsBySector(fixture: TestEngine): void {
  const models = findLiveModels(fixture.store)!;
  for (const { memoryNo } of fixture.all<{ memoryNo: number }>(
    `SELECT seq AS memoryNo FROM memory_dynamics WHERE state = 'ready'`,
  )) {
    const expected = new Set(sectorsOf(fixture, memoryNo).map((sector) => modelOfSector(models, sector).modelNo));
    const rows = fixture.all<{ model_no: number; windows: number }>(
      `SELECT model_no, count(*) AS windows FROM vectors WHERE memory = ? GROUP BY model_no`,
      memoryNo,
    );
    expect(new Set(rows.map((row) => row.model_no)), `models of memory ${memoryNo}`).toEqual(expected);
    expect(new Set(rows.map(({ windows }) => windows)).size, 'as many windows by each').toBe(1);
  }
}

/** Every vector of a whole text is what its own model says of that text. */
async function expectVectorsOf(fixture: TestEngine, provider: FakeProvider): Promise<void> {
  const embeddings = new Map(storedVectors(fixture.store.db).map(({ vectorNo, embedding }) => [vectorNo, embedding]));
  const rows = fixture.all<{ content: string; model: string; vectorNo: number }>(
    `SELECT m.content, o.model, v.vector_no AS vectorNo FROM vectors v
     JOIN memories m ON m.seq = v.memory JOIN models o USING (model_no)
     WHERE v.window_no = 0 AND (SELECT count(*) FROM vectors w WHERE w.memory = v.memory AND w.model_no = v.model_no) = 1`,
  );
  expect(rows.length).toBeGreaterThan(0);
  for (const { content, model, vectorNo } of rows) {
    const expected = await provider.vectorOf(model, content);
    expect(cosine(embeddings.get(vectorNo)!, expected)).toBeGreaterThan(0.9999);
  }
}

function whole(fixture: TestEngine, memoryNo: number, model: string): Float32Array | undefined {
  return read(fixture, memoryNo, model).sort((a, b) => a.windowNo - b.windowNo)[0]?.embedding;
}

function vectorAt(fixture: TestEngine, memoryNo: number, model: string, window: number): Float32Array | undefined {
  return read(fixture, memoryNo, model).find(({ windowNo }) => windowNo === window)?.embedding;
}

function read(fixture: TestEngine, memoryNo: number, model: string): StoredVector[] {
  return storedVectors(fixture.store.db).filter((vector) => vector.memory === memoryNo && vector.model === model);
}

function vectorsOf(fixture: TestEngine): unknown[] {
  return fixture.all(
    `SELECT m.content, o.model, v.window_no, hex(${STORED_BYTES}) AS bytes
     FROM vectors v JOIN memories m ON m.seq = v.memory JOIN models o USING (model_no)
     ORDER BY m.seq, o.model, v.window_no`,
  );
}

function waypointsOf(fixture: TestEngine): unknown[] {
  return fixture.all(
    `SELECT s.content AS src, d.content AS dst, e.similarity
     FROM edges e JOIN memories s ON s.seq = e.src JOIN memories d ON d.seq = e.dst
     WHERE e.automatic = 1 ORDER BY s.seq, d.seq`,
  );
}
