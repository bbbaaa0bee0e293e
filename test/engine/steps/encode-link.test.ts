import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { classify } from '../../../src/engine/sectors/classify.ts';
import { SECTOR_PROFILES } from '../../../src/engine/sectors/profiles.ts';
import { putLinkBase } from '../../../src/engine/store/link-bases.ts';
import { cosine, decodeVector, meanVector } from '../../../src/engine/store/vector-encoding.ts';
import { shownEntities, shownGist } from '../../../src/engine/entities/skim.ts';
import { windowsOf } from '../../../src/engine/text/windows.ts';
import { SECTORS, type Sector } from '../../../src/engine/types.ts';
import {
  expectNoOrphans,
  newMemory,
  openTestEngine,
  START,
  type TestEngine,
  type TestMemory,
} from '../../support/engine-fixture.ts';

const TEXTS: Readonly<Record<Sector, string>> = {
  episodic: 'Yesterday we met Paul at the station and went to dinner.',
  semantic: 'The quokka is a marsupial; by definition it belongs to the wallabies.',
  procedural: 'How to bake bread: first mix the flour, then knead, step by step.',
  emotional: 'I feel so happy and excited, I love it!',
  reflective: 'I realized that I tend to give up too early; looking back, the lesson is patience.',
};

interface Edge {
  readonly src: number;
  readonly dst: number;
  readonly similarity: number;
  readonly weight: number;
  readonly automatic: number;
}

const edgesOf = (fixture: TestEngine): Edge[] =>
  fixture.all('SELECT src, dst, similarity, weight, automatic FROM edges ORDER BY src, dst');
const pairs = (fixture: TestEngine) => edgesOf(fixture).map(({ src, dst }) => [src, dst]);

/** The vector that stands for each memory, as stored. */
function wholeVectors(fixture: TestEngine): Map<number, { userNo: number; sector: Sector; vector: Float32Array }> {
  const rows = fixture.all<{ memory: number; embedding: Buffer; userNo: number; sector: Sector }>(
    `SELECT v.memory, v.embedding, m.user_no AS userNo, d.primary_sector AS sector FROM vectors v
       JOIN memories m ON m.seq = v.memory JOIN memory_dynamics d ON d.seq = v.memory
     WHERE v.window_no = (SELECT min(window_no) FROM vectors w WHERE w.memory = v.memory) ORDER BY v.memory`,
  );
  return new Map(rows.map((row) => [row.memory, { ...row, vector: decodeVector(row.embedding, 'int5', 256) }]));
}

/** The waypoints that the rules call for when memories are linked one after the other, by comparing all with all. */
function expectedWaypoints(fixture: TestEngine, threshold: number): Map<number, { dst: number; similarity: number }> {
  const memories = wholeVectors(fixture);
  const waypoints = new Map<number, { dst: number; similarity: number }>();
  for (const [src, own] of memories) {
    let nearest: { dst: number; similarity: number } | undefined;
    for (const [dst, other] of memories) {
      if (dst >= src || other.userNo !== own.userNo) continue;
      const similarity = cosine(own.vector, other.vector);
      if (nearest === undefined || similarity > nearest.similarity) nearest = { dst, similarity };
    }
    if (nearest === undefined || nearest.similarity < threshold) continue;
    waypoints.set(src, nearest);
    const back = waypoints.get(nearest.dst);
    const crosses = own.sector !== memories.get(nearest.dst)!.sector;
    if (crosses && (back === undefined || back.similarity < nearest.similarity)) {
      waypoints.set(nearest.dst, { dst: src, similarity: nearest.similarity });
    }
  }
  return waypoints;
}

/** Sentences that share words in many degrees. */
function relatedTexts(count: number): string[] {
  const subjects = ['wallaby', 'quokka', 'wombat', 'echidna'];
  const verbs = ['Yesterday we saw how the', 'First check that the', 'I feel happy when the', 'The definition of the'];
  const places = [
    'in the garden',
    'near the old bridge',
    'by the river at night',
    'under the gum tree',
    'on the island',
  ];
  return Array.from(
    { length: count },
    (_, n) => `${verbs[n % 4]} ${subjects[(n >> 1) % 4]} sleeps ${places[(n * 7) % 5]} for ${n} hours`,
  );
}

describe('the encode step', () => {
  test.each(SECTORS)('recognises %s and gives it the salience and decay of its sectors', async (sector) => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: TEXTS[sector] });
    expect((await fixture.tenant.getMemory(id)).salience).toBe(0.4);
    await fixture.drain();
    const memory = await fixture.tenant.getMemory(id);
    const found = classify(TEXTS[sector], 'learned');
    expect(memory).toMatchObject({ state: 'ready', primarySector: sector, sectors: [sector, ...found.additional] });
    expect(memory.salience).toBeCloseTo(0.4 + 0.1 * found.additional.length, 10);
    expect(memory.decayLambda).toBe(SECTOR_PROFILES[sector].decayLambda);
  });

  test('adds 0.1 for each additional sector to what the memory started with, once', async () => {
    await using fixture = await openTestEngine();
    const content = `${TEXTS.emotional} ${TEXTS.procedural} ${TEXTS.episodic}`;
    const additional = classify(content, 'learned').additional.length;
    expect(additional).toBeGreaterThan(0);
    const { id } = await fixture.add({ content });
    const important = await fixture.add({ content: `${content} Really.`, importance: 0.9 });
    await fixture.drain();
    expect((await fixture.tenant.getMemory(id)).salience).toBeCloseTo(0.4 + 0.1 * additional, 10);
    expect((await fixture.tenant.getMemory(important.id)).salience).toBe(0.9);
    await fixture.tenant.patchMemory(id, { content: `${content} Indeed.` });
    await fixture.drain();
    expect((await fixture.tenant.getMemory(id)).salience).toBeCloseTo(0.4 + 0.1 * additional, 10);
  });

  test('leaves the importance alone that a PATCH stated while the memory was being encoded', async () => {
    let onEmbed = async () => {};
    await using fixture = await openTestEngine({
      embedder: (embedder) => ({
        ...embedder,
        async embed(texts, options) {
          await onEmbed();
          return embedder.embed(texts, options);
        },
      }),
    });
    const content = `${TEXTS.emotional} ${TEXTS.procedural}`;
    const { id } = await fixture.add({ content });
    onEmbed = async () => void (await fixture.tenant.patchMemory(id, { importance: 0.3 }));
    await fixture.drain();
    expect(await fixture.tenant.getMemory(id)).toMatchObject({ salience: 0.3, importance: 0.3, state: 'ready' });
  });

  test('obeys metadata.sector, and keeps what the text shows besides', async () => {
    await using fixture = await openTestEngine();
    const { id } = await fixture.add({ content: TEXTS.emotional, metadata: { sector: 'procedural' } });
    const plain = await fixture.add({ content: 'Blue.', metadata: { sector: 'reflective' } });
    await fixture.drain();
    expect(await fixture.tenant.getMemory(id)).toMatchObject({ primarySector: 'procedural', decayLambda: 0.008 });
    expect((await fixture.tenant.getMemory(id)).sectors).toContain('emotional');
    expect(await fixture.tenant.getMemory(plain.id)).toMatchObject({ sectors: ['reflective'], salience: 0.4 });
  });

  test('takes the one decay of the settings where there is one', async () => {
    await using fixture = await openTestEngine({ settings: { OM_DECAY_LAMBDA: '0.3' } });
    const { id } = await fixture.add({ content: TEXTS.emotional });
    expect((await fixture.tenant.getMemory(id)).decayLambda).toBe(0.3);
    await fixture.drain();
    expect((await fixture.tenant.getMemory(id)).decayLambda).toBe(0.3);
  });

  test('fills gist and entities only where the caller said nothing', async () => {
    await using fixture = await openTestEngine();
    const content = 'Marie Curie worked in Paris. She discovered polonium and radium there with Pierre.';
    const silent = await fixture.add({ content });
    const stated = await fixture.add({ content: `${content} Later.`, gist: 'my gist', entities: ['My Entity'] });
    await fixture.drain();
    expect(shownGist(await fixture.tenant.getMemory(silent.id))).not.toBe('');
    expect(shownEntities(await fixture.tenant.getMemory(silent.id)).join()).toContain('Curie');
    expect(await fixture.tenant.getMemory(stated.id)).toMatchObject({ gist: 'my gist', entities: ['My Entity'] });
    expect(await fixture.tenant.getMemory(silent.id)).toMatchObject({ version: 1, updatedAt: START });
  });

  test('keeps a vector a window of a long text and their mean as number -1, and indexes each in its role', async () => {
    await using fixture = await openTestEngine();
    const content = Array.from({ length: 1_200 }, (_, n) => `word${n} of a long marsupial text`).join(' ');
    const windows = windowsOf(content).map(({ start, end }) => content.slice(start, end));
    expect(windows.length).toBeGreaterThan(2);
    const long = await fixture.add({ content });
    const short = await fixture.add({ content: 'short' });
    await fixture.drain();
    const rows = fixture.all<{ window_no: number; embedding: Buffer; role: number }>(
      'SELECT window_no, embedding, role FROM vectors WHERE memory = ? ORDER BY window_no',
      long.memoryNo,
    );
    expect(rows.map(({ window_no }) => window_no)).toEqual([-1, ...windows.keys()]);
    expect(rows.map(({ role }) => role)).toEqual([2, ...windows.map(() => 1)]);
    const expected = await fixture.batch.embedder!.embed(windows, { purpose: 'document' });
    for (const [n, vector] of [meanVector(expected), ...expected].entries()) {
      expect(cosine(decodeVector(rows[n]!.embedding, 'int5', 256), vector)).toBeGreaterThan(0.996);
    }
    expect(fixture.all('SELECT window_no, role FROM vectors WHERE memory = ?', short.memoryNo)).toEqual([
      { window_no: 0, role: 0 },
    ]);
    await fixture.tenant.patchMemory(long.id, { content: 'short now' });
    await fixture.drain();
    expect(fixture.all('SELECT window_no FROM vectors WHERE memory = ?', long.memoryNo)).toEqual([{ window_no: 0 }]);
    expectNoOrphans(fixture.store);
  });

  test('without vectors finishes with sectors and gist alone', async () => {
    await using fixture = await openTestEngine({ settings: { OM_EMBEDDINGS: 'none' } });
    const { id, jobId } = await fixture.add({ content: TEXTS.emotional });
    await fixture.drain();
    expect(await fixture.tenant.getMemory(id)).toMatchObject({ state: 'ready', primarySector: 'emotional' });
    expect((await fixture.tenant.getJob(jobId)).timeline.map(({ event }) => event)).toEqual([
      'queued',
      'encoded',
      'done',
    ]);
    expect(fixture.get('SELECT count(*) FROM vectors')).toBe(0);
  });
});

describe('the link step', () => {
  const NEAR = 'The wallaby hops across the long road at night.';

  test('draws one waypoint to the nearest other memory of the user, with the similarity measured as weight', async () => {
    await using fixture = await openTestEngine();
    const near = await fixture.add({ content: NEAR });
    await fixture.add({ content: 'The wallaby hops across town.' });
    await fixture.add({ content: 'Completely different: interest rates rose.' });
    const last = await fixture.add({ content: `${NEAR} Again.` });
    await fixture.drain();
    const own = edgesOf(fixture).filter(({ src }) => src === last.memoryNo);
    expect(own).toMatchObject([{ dst: near.memoryNo, automatic: 1 }]);
    const vectors = wholeVectors(fixture);
    const measured = cosine(vectors.get(last.memoryNo)!.vector, vectors.get(near.memoryNo)!.vector);
    expect(own[0]!.similarity).toBeCloseTo(measured, 10);
    expect(own[0]!.weight).toBe(own[0]!.similarity);
  });

  test('draws none under the threshold, none to itself, and none across users', async () => {
    await using fixture = await openTestEngine();
    await fixture.add({ content: NEAR, userId: 'u' });
    await fixture.add({ content: NEAR, userId: 'v' });
    await fixture.add({ content: NEAR });
    await fixture.add({ content: 'Interest rates rose sharply.', userId: 'u' });
    await fixture.drain();
    expect(edgesOf(fixture)).toEqual([]);
  });

  test('stops exactly at the threshold', async () => {
    for (const [above, drawn] of [
      [0, 1],
      [1e-9, 0],
    ] as const) {
      let threshold = 1;
      await using fixture = await openTestEngine({
        embedder: (embedder) => ({
          ...embedder,
          get waypointThreshold() {
            return threshold;
          },
        }),
      });
      const a = await fixture.add({ content: NEAR });
      await fixture.drain();
      const b = await fixture.add({ content: `${NEAR} Again.` });
      threshold = 2;
      await fixture.drain();
      expect(edgesOf(fixture)).toEqual([]);
      const vectors = wholeVectors(fixture);
      threshold = cosine(vectors.get(b.memoryNo)!.vector, vectors.get(a.memoryNo)!.vector) + above;
      fixture.store.db.prepare(`UPDATE jobs SET step = 'link', state = 'queued' WHERE memory = ?`).run(b.memoryNo);
      await fixture.drain();
      expect(edgesOf(fixture)).toHaveLength(drawn);
    }
  });

  test('counts the threshold from how near unrelated texts lie in this file', async () => {
    const base = 0.5;
    for (const [above, drawn] of [
      [-1e-9, 1],
      [1e-9, 0],
    ] as const) {
      let threshold = 1;
      await using fixture = await openTestEngine({
        embedder: (embedder) => ({
          ...embedder,
          isAnisotropic: true,
          get waypointThreshold() {
            return threshold;
          },
        }),
      });
      const a = await fixture.add({ content: NEAR });
      const b = await fixture.add({ content: `${NEAR} Again.` });
      await fixture.drain();
      expect(edgesOf(fixture)).toEqual([]);
      fixture.store.write(() => putLinkBase(fixture.store, 1, base));
      const vectors = wholeVectors(fixture);
      const measured = cosine(vectors.get(b.memoryNo)!.vector, vectors.get(a.memoryNo)!.vector);
      expect(measured).toBeGreaterThan(base);
      threshold = (measured - base) / (1 - base) + above;
      fixture.store.db.prepare(`UPDATE jobs SET step = 'link', state = 'queued' WHERE memory = ?`).run(b.memoryNo);
      await fixture.drain();
      expect(edgesOf(fixture)).toHaveLength(drawn);
    }
  });

  test('stores the way back where the sectors differ, unless the other side has a nearer one', async () => {
    await using fixture = await openTestEngine();
    const add = async (content: string, sector: Sector) =>
      (await fixture.add({ content, metadata: { sector } })).memoryNo;
    const a = await add(NEAR, 'semantic');
    const b = await add(`${NEAR} Twice.`, 'semantic');
    await fixture.drain();
    expect(pairs(fixture), 'same sector: one way').toEqual([[b, a]]);
    const c = await add('The wallaby hops across the long road in the day.', 'episodic');
    await fixture.drain();
    const target = edgesOf(fixture).find(({ src }) => src === c)!.dst;
    expect([a, b]).toContain(target);
    expect(expectedWaypoints(fixture, fixture.batch.embedder!.waypointThreshold)).toEqual(
      new Map(edgesOf(fixture).map(({ src, dst, similarity }) => [src, { dst, similarity }])),
    );
  });

  test('follows its rules whatever the memories, users and sectors', async () => {
    const memory = fc.record({
      text: fc.integer({ min: 0, max: 39 }),
      userId: fc.constantFrom('', 'u'),
      sector: fc.constantFrom(...SECTORS),
      batch: fc.integer({ min: 1, max: 5 }),
    });
    const texts = relatedTexts(40);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(memory, { maxLength: 18, selector: ({ text, userId }) => `${userId}${text}` }),
        async (memories) => {
          await using fixture = await openTestEngine();
          await fixture.tenant.addMemories(
            memories.map(({ text, userId, sector }) =>
              newMemory({ content: texts[text]!, userId, metadata: { sector } }),
            ),
          );
          await fixture.drain(memories[0]?.batch ?? 1);
          const found = new Map(edgesOf(fixture).map(({ src, dst, similarity }) => [src, { dst, similarity }]));
          expect(found.size, 'one automatic waypoint a memory').toBe(edgesOf(fixture).length);
          expect([...found].sort()).toEqual(
            [...expectedWaypoints(fixture, fixture.batch.embedder!.waypointThreshold)].sort(),
          );
        },
      ),
      { numRuns: 12 },
    );
  });

  test('makes the same graph in batches of 1, 7 and 64', async () => {
    // So alike that those of one batch crowd out what came before it.
    const alike = Array.from({ length: 90 }, (_, n) => `The wallaby sleeps under the old gum tree for ${n} hours`);
    const texts = [...relatedTexts(60), ...alike];
    const graphs: unknown[] = [];
    for (const size of [1, 7, 64]) {
      await using fixture = await openTestEngine();
      await fixture.tenant.addMemories(
        texts.map((content, n) => newMemory({ content, userId: n % 8 === 0 ? 'other' : 'u' })),
      );
      await fixture.drain(size);
      expect((await fixture.tenant.stats()).waypoints).toBeGreaterThan(60);
      graphs.push(edgesOf(fixture));
    }
    expect(graphs[1]).toEqual(graphs[0]);
    expect(graphs[2]).toEqual(graphs[0]);
  });

  test('after a delete links those anew whose waypoint led there, and nobody else', async () => {
    await using fixture = await openTestEngine();
    const first = await fixture.add({ content: 'The wallaby hops across the road.' });
    const best = await fixture.add({ content: NEAR });
    const last = await fixture.add({ content: `${NEAR} Again.` });
    await fixture.drain();
    expect(pairs(fixture)).toContainEqual([last.memoryNo, best.memoryNo]);
    await fixture.tenant.deleteMemory(best.id);
    expect(await fixture.drain()).toBe(1);
    expect(pairs(fixture)).toEqual([[last.memoryNo, first.memoryNo]]);
    expect((await fixture.tenant.getMemory(last.id)).state).toBe('ready');
    expectNoOrphans(fixture.store);
  });
});

describe('a PATCH of the text', () => {
  const SUBJECT = 'The wallaby hops across the long road at night.';
  const setUp = async (fixture: TestEngine, extra: Partial<TestMemory> = {}) => {
    const other = await fixture.add({ content: 'The wallaby hops along a road.', ...extra });
    const changing = await fixture.add({ content: SUBJECT, ...extra });
    const pointing = await fixture.add({ content: `${SUBJECT} Again.`, ...extra });
    await fixture.drain();
    expect(pairs(fixture)).toContainEqual([pointing.memoryNo, changing.memoryNo]);
    return { other, changing, pointing };
  };

  test.each([1, 64])('that changes the subject leads its neighbours elsewhere, in batches of %i', async (size) => {
    await using fixture = await openTestEngine();
    const { other, changing, pointing } = await setUp(fixture);
    await fixture.tenant.patchMemory(changing.id, { content: 'Interest rates rose sharply this quarter.' });
    await fixture.drain(size);
    expect(pairs(fixture)).toEqual([[pointing.memoryNo, other.memoryNo]]);
    expect(await fixture.tenant.getMemory(changing.id)).toMatchObject({ state: 'ready', version: 2 });
    expectNoOrphans(fixture.store);
  });

  test.each([1, 64])(
    'that keeps the subject keeps the links, with the similarity measured anew, in batches of %i',
    async (size) => {
      await using fixture = await openTestEngine();
      const { changing, pointing } = await setUp(fixture);
      await fixture.tenant.patchMemory(changing.id, { content: `${SUBJECT} Slowly.` });
      await fixture.drain(size);
      const edge = edgesOf(fixture).find(({ src }) => src === pointing.memoryNo);
      const vectors = wholeVectors(fixture);
      expect(edge).toMatchObject({ dst: changing.memoryNo });
      expect(edge!.similarity).toBeCloseTo(
        cosine(vectors.get(pointing.memoryNo)!.vector, vectors.get(changing.memoryNo)!.vector),
        10,
      );
    },
  );

  test('takes the old vectors away at once, so that nothing finds the memory by what it no longer says', async () => {
    await using fixture = await openTestEngine();
    const { changing } = await setUp(fixture);
    await fixture.tenant.patchMemory(changing.id, { content: 'Interest rates rose sharply this quarter.' });
    expect(fixture.get('SELECT count(*) FROM vectors WHERE memory = ?', changing.memoryNo)).toBe(0);
    expectNoOrphans(fixture.store);
  });

  test('or of the title encodes anew, since both are embedded', async () => {
    await using fixture = await openTestEngine();
    const { id, memoryNo } = await fixture.add({ content: SUBJECT, title: 'Animals' });
    await fixture.drain();
    await fixture.tenant.patchMemory(id, { title: 'Interest rates' });
    expect((await fixture.tenant.getMemory(id)).state).toBe('queued');
    await fixture.drain();
    const [expected] = await fixture.batch.embedder!.embed([`Interest rates\n${SUBJECT}`], { purpose: 'document' });
    expect(cosine(wholeVectors(fixture).get(memoryNo)!.vector, expected!)).toBeGreaterThan(0.996);
  });
});

test('a neighbour that goes does not give a failing job its attempts back', async () => {
  let broken = false;
  await using fixture = await openTestEngine({
    embedder: (embedder) => ({
      ...embedder,
      async embed(texts, options) {
        if (broken) throw new Error('broken');
        return embedder.embed(texts, options);
      },
    }),
  });
  const near = await fixture.add({ content: 'The wallaby hops across the road.', metadata: { sector: 'semantic' } });
  const { id, memoryNo } = await fixture.add({
    content: 'The wallaby hops across the roads.',
    metadata: { sector: 'semantic' },
  });
  await fixture.drain();
  expect(pairs(fixture)).toEqual([[memoryNo, near.memoryNo]]);
  await fixture.tenant.patchMemory(id, { metadata: { sector: 'episodic' } });
  broken = true;
  await fixture.drain();
  const attempts = () => fixture.get('SELECT attempts FROM jobs WHERE memory = ? AND state = ?', memoryNo, 'failed');
  expect(attempts()).toBe(1);
  await fixture.tenant.deleteMemory(near.id);
  expect(attempts()).toBe(1);
});

test('a batch of long texts lets others on its thread have their turn', async () => {
  let turn = 0;
  const embeddedIn = new Set<number>();
  await using fixture = await openTestEngine({
    embedder: (embedder) => ({
      ...embedder,
      async embed(texts, options) {
        embeddedIn.add(turn);
        return embedder.embed(texts, options);
      },
    }),
  });
  const LONG = 60;
  const text = relatedTexts(200).join(' ').slice(0, 30_000);
  for (let at = 0; at < LONG; at++) await fixture.add({ content: `Number ${at}. ${text}` });
  let isDone = false;
  const countTurns = () => {
    turn += 1;
    if (!isDone) setImmediate(countTurns);
  };
  countTurns();
  await fixture.runBatch(LONG);
  isDone = true;
  // Together they take far longer than a thread may be held; without a break all of them would be embedded in one turn.
  expect(embeddedIn.size).toBeGreaterThan(2);
});
