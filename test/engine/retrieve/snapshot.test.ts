import { expect, test } from 'vitest';
import { type LanguageModel, silentLogger } from '../../../src/engine/ports.ts';
import { retrieve, type RetrieveContext } from '../../../src/engine/retrieve/retrieve.ts';
import { readMemories } from '../../../src/engine/store/memories.ts';
import type { Store } from '../../../src/engine/store/open-store.ts';
import { openTestEngine, type TestEngine } from '../../support/engine-fixture.ts';

const WORDS_ONLY = { OM_EMBEDDINGS: 'none' };

/** Two notes that the words find, and one that only a link from the first brings. */
async function addLinked(fixture: TestEngine): Promise<{ origin: string; reached: string; both: string }> {
  const { id: origin } = await fixture.add({ content: 'The lighthouse keeper is called Ana.' });
  const { id: reached } = await fixture.add({ content: 'She paints at night.' });
  const { id: both } = await fixture.add({ content: 'A lighthouse stands on the stamp.' });
  await fixture.drain();
  await fixture.tenant.linkMemories({ src: reached, dst: origin, type: 'supports', weight: 1 });
  return { origin, reached, both };
}

function contextOf(fixture: TestEngine, more: Partial<RetrieveContext>): RetrieveContext {
  return {
    store: fixture.store,
    embedder: null,
    modelNo: null,
    index: null,
    embedQuery: async () => null,
    languageModel: null,
    logger: silentLogger,
    clock: fixture.clock,
    defaults: [],
    newId: () => 'recall',
    readMemories,
    ...more,
  };
}

const QUERY = { query: 'lighthouse keeper', k: 10, filter: {}, minScore: 0, relativeFloor: 0 };

test('an answer is written on the snapshot that it was found on: what is committed after it cannot change a path', async () => {
  await using fixture = await openTestEngine({ settings: WORDS_ONLY });
  const { origin, reached } = await addLinked(fixture);
  // Whatever is read after the snapshot that gave the hits was closed meets a file in which the origin is gone.
  let isGone = false;
  const read: Store['read'] = (work) => {
    const result = fixture.store.read(work);
    const isAnswer = typeof result === 'object' && result !== null && 'hits' in result;
    if (isAnswer && !isGone && !fixture.store.db.inTransaction) {
      isGone = true;
      fixture.store.write(() => fixture.store.db.prepare('DELETE FROM memories WHERE id = ?').run(origin));
    }
    return result;
  };
  // Not a copy, which would hold the values that its getters have now.
  const store = Object.create(fixture.store, { read: { value: read } }) as Store;
  const { hits } = await retrieve(contextOf(fixture, { store }), QUERY);
  expect(fixture.memoryNoOf(origin)).toBeUndefined();
  expect(hits.find(({ memory }) => memory.id === reached)?.path).toEqual([origin, reached]);
});

test('a memory erased while a language model was waited for stands in no path, nor does another in its place', async () => {
  await using fixture = await openTestEngine({ settings: WORDS_ONLY });
  const { origin, reached, both } = await addLinked(fixture);
  const languageModel: LanguageModel = {
    provider: 'test',
    model: 'test',
    async complete() {
      await fixture.tenant.deleteMemory(origin);
      return { text: '[1, 2, 3]', inputTokens: 1, outputTokens: 1 };
    },
  };
  const { hits } = await retrieve(contextOf(fixture, { languageModel }), { ...QUERY, rerank: 'llm' });
  expect(new Map(hits.map(({ memory, path }) => [memory.id, path]))).toEqual(
    new Map([
      [both, [both]],
      [reached, [reached]],
    ]),
  );
});
