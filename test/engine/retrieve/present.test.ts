import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { silentLogger } from '../../../src/engine/ports.ts';
import { retrieve, type RetrieveContext } from '../../../src/engine/retrieve/retrieve.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import { openStore, type Store } from '../../../src/engine/store/open-store.ts';
import { estimateTokens } from '../../../src/engine/text/tokens.ts';
import type { Memory, MemoryQuery } from '../../../src/engine/types.ts';
import { type SeedMemory, seedEdge, seedMemories } from '../../support/seed-store.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const NOW = Date.UTC(2026, 0, 5);
const DAY = 86_400_000;

const MEMORIES: Readonly<Record<string, SeedMemory>> = {
  transcript: { content: 'A long talk of last week, word by word', title: 'Talk with Ana', userId: 'ana' },
  summary: { content: 'What the talk was about', userId: 'ana' },
  // Both facts come from the summary, which comes from the transcript.
  employer: { content: 'Ana works at the lighthouse', userId: 'ana', type: 'fact' },
  hobby: { content: 'Ana paints the lighthouse at night', userId: 'ana', type: 'fact' },
  // One session.
  question: { content: 'Where did you leave the keys?', userId: 'ana', sessionId: 'chat', eventTime: NOW - 5 * DAY },
  answer: { content: 'Under the lighthouse stairs', userId: 'ana', sessionId: 'chat', eventTime: NOW - 4 * DAY },
  thanks: { content: 'Thank you so much', userId: 'ana', sessionId: 'chat', eventTime: NOW - 3 * DAY },
  hidden: {
    content: 'What nobody may see any more',
    userId: 'ana',
    sessionId: 'chat',
    eventTime: NOW - 2 * DAY,
    status: 'archived',
  },
  bye: { content: 'See you tomorrow', userId: 'ana', sessionId: 'chat', eventTime: NOW - DAY },
  // Of nobody's session, from someone else's document.
  orphan: { content: 'A lighthouse on a stamp', userId: 'ana' },
  foreign: { content: 'The catalogue of stamps', userId: 'bob' },
};

let store: Store;
let ids: Readonly<Record<string, string>>;
beforeAll(async () => {
  store = openStore(path.join(tempFolder(), 'present.sqlite'), { role: 'worker', create: true });
  const seeded = await seedMemories(store, Object.values(MEMORIES), NOW);
  const names = Object.keys(MEMORIES);
  ids = Object.fromEntries(names.map((name, place) => [name, seeded[place]!.id]));
  const derive = (src: string, dst: string) =>
    seedEdge(store, {
      src: seeded[names.indexOf(src)]!.memoryNo,
      dst: seeded[names.indexOf(dst)]!.memoryNo,
      weight: 1,
      type: 'derived_from',
    });
  store.write(() => {
    derive('summary', 'transcript');
    derive('employer', 'summary');
    derive('hobby', 'summary');
    derive('orphan', 'foreign');
  });
  return () => store.close();
});

const nameOf = (id: string) => Object.keys(ids).find((name) => ids[name] === id) ?? id;
const names = (memories: readonly Memory[] = []) => memories.map(({ id }) => nameOf(id));

function ask(query: Partial<MemoryQuery>) {
  const context: RetrieveContext = {
    store,
    embedder: null,
    modelNo: null,
    index: null,
    embedQuery: async () => null,
    languageModel: null,
    logger: silentLogger,
    clock: { now: () => NOW },
    defaults: [],
    newId: () => 'recall',
    readMemories,
  };
  const plain = { query: 'lighthouse', k: 20, filter: { userIds: ['ana'] }, maxHops: 0, minScore: 0, relativeFloor: 0 };
  return retrieve(context, { ...plain, ...query });
}

describe('episodes', () => {
  test('are the memories that hits come from in the end, else their sessions, best first', async () => {
    const { hits, episodes } = await ask({ includeEpisodes: true });
    expect(names(hits.map(({ memory }) => memory)).sort()).toEqual(
      // The turns after the answer have its words as their context.
      expect.arrayContaining(['answer', 'employer', 'hobby', 'orphan']),
    );
    const shown = episodes!.map(({ memoryIds, memory, ...episode }) => ({
      ...episode,
      memory: memory && nameOf(memory.id),
      of: memoryIds
        .map(nameOf)
        .filter((name) => ['employer', 'hobby', 'answer', 'orphan'].includes(name))
        .sort(),
    }));
    expect(shown).toHaveLength(2);
    expect(shown).toContainEqual({
      kind: 'memory',
      id: ids['transcript'],
      userId: 'ana',
      title: 'Talk with Ana',
      memory: 'transcript',
      of: ['employer', 'hobby'],
    });
    expect(shown).toContainEqual({
      kind: 'session',
      id: 'chat',
      userId: 'ana',
      title: 'chat',
      memory: null,
      of: ['answer'],
    });
    const places = episodes!.map(({ memoryIds }) => hits.findIndex(({ memory }) => memory.id === memoryIds[0]));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  test('come only on demand', async () => {
    expect(await ask({})).not.toHaveProperty('episodes');
    expect(await ask({ includeEpisodes: false, format: 'prompt' })).not.toHaveProperty('episodes');
    expect(await ask({ format: 'prompt' })).toHaveProperty('episodes');
  });

  test('are headed by nothing that the filter leaves out', async () => {
    const facts = await ask({ includeEpisodes: true, filter: { userIds: ['ana'], types: ['fact'] } });
    expect(facts.episodes).toEqual([]);
    const anyone = await ask({ includeEpisodes: true, filter: {} });
    expect(names(anyone.episodes!.flatMap(({ memory }) => memory ?? []))).toContain('foreign');
  });

  test('a source that is found without what is derived from it is an episode of its own', async () => {
    const { episodes } = await ask({ query: 'word by word', includeEpisodes: true });
    expect(episodes).toMatchObject([{ id: ids['transcript'], memoryIds: [ids['transcript']] }]);
  });
});

describe('expand', () => {
  const hitOf = async (name: string, query: Partial<MemoryQuery>) =>
    (await ask({ query: 'lighthouse stairs', ...query })).hits.find(({ memory }) => memory.id === ids[name])!;

  test('neighbours are the two turns before and after, as far as they are visible', async () => {
    const { neighbours } = await hitOf('answer', { expand: ['neighbours'] });
    expect(names(neighbours!.before)).toEqual(['question']);
    // The archived one between is passed over.
    expect(names(neighbours!.after)).toEqual(['thanks', 'bye']);
    expect(await hitOf('orphan', { expand: ['neighbours'] })).toMatchObject({ neighbours: { before: [], after: [] } });
  });

  test('document brings what a hit is derived from, nearest first', async () => {
    const { sources } = await hitOf('hobby', { expand: ['document'] });
    expect(names(sources)).toEqual(['summary', 'transcript']);
    // Someone else's: outside the filter.
    expect(await hitOf('orphan', { expand: ['document'] })).toMatchObject({ sources: [] });
  });

  test('brings nothing that was not asked for', async () => {
    const hit = await hitOf('answer', {});
    expect(hit).not.toHaveProperty('neighbours');
    expect(hit).not.toHaveProperty('sources');
    expect(await hitOf('answer', { expand: ['document'] })).not.toHaveProperty('neighbours');
  });

  test('looking back shows nothing that came later', async () => {
    const asOf = { valid: NOW - 3 * DAY };
    const { neighbours } = await hitOf('answer', { expand: ['neighbours'], asOf });
    expect(names(neighbours!.after)).toEqual(['thanks']);
  });

  test('around many long texts brings no more than four megabytes, for the best hits', async () => {
    const long = Array.from({ length: 60 }, (_, place) => ({
      content: `zeppelin ${place} ${'filler '.repeat(30_000)}`,
      userId: 'carl',
      sessionId: 'long',
    }));
    await seedMemories(store, long, NOW);
    const { hits } = await ask({
      query: 'zeppelin',
      k: 40,
      filter: { userIds: ['carl'] },
      expand: ['neighbours'],
    });
    const around = hits.map(({ neighbours }) => [...neighbours!.before, ...neighbours!.after]);
    const bytes = around.flat().reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
    expect(around[0]!.length).toBeGreaterThan(0);
    expect(bytes).toBeLessThanOrEqual(4 * 1024 * 1024);
    expect(around.at(-1)).toEqual([]);
  });
});

describe('format', () => {
  test('prompt and text hold every hit within the budget, and the hits are those of the text', async () => {
    for (const format of ['prompt', 'text'] as const) {
      for (const tokenBudget of [1, 40, 90, 150, 400]) {
        const { hits, rendered } = await ask({ format, tokenBudget, expand: ['neighbours', 'document'] });
        expect(rendered!.tokens).toBe(estimateTokens(rendered!.text));
        expect(rendered!.tokens).toBeLessThanOrEqual(tokenBudget);
        for (const { memory } of hits) expect(rendered!.text).toContain(`[memory ${memory.id}, `);
      }
    }
    const { rendered } = await ask({ format: 'prompt' });
    expect(rendered!.text).toContain('### "Talk with Ana"\n_[memory ');
    expect(await ask({})).not.toHaveProperty('rendered');
  });
});
