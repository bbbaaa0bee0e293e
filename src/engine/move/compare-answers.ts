/** Runs the same queries on two copies of a tenant and compares the answers, which must be equal. */

import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config.ts';
import { silentLogger, type Embedder } from '../ports.ts';
import { createRandom } from '../random.ts';
import { answerQuery } from '../readers/answer-query.ts';
import type { ReadContext } from '../readers/read-context.ts';
import { findLiveModels, distinctModels } from '../store/live-model.ts';
import { sampleMemories, type SampledMemory } from '../store/sample-memories.ts';
import type { Store } from '../store/open-store.ts';
import { findWholeVector } from '../store/vectors.ts';
import { openTenant, type OpenTenant, type SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { MovedTenant } from './places.ts';

/** Greatest number of questions that both copies of a tenant are asked, to compare their answers. */
const MAX_QUESTIONS = 200;
/** Length of a question, in Unicode code points from the beginning of a memory's text. */
const QUESTION_CHARACTERS = 80;
/** Number of hits of each answer that are compared between the two copies. */
const HITS = 10;
/** Longest time for one query (ms). It is long, because an answer that a deadline cut off cannot be compared. */
const DEADLINE_MS = 600_000;

/** Result of comparing the answers of the two copies of a tenant. */
export interface ComparedAnswers {
  /**
   * Number of questions for which both copies searched with the same words. Only these answers are compared: each
   * database engine skips very common words by the size of their posting lists in bytes, and that size differs between
   * the engines.
   */
  readonly questions: number;
  /**
   * Number of compared questions whose answers differ in the ids, the scores or the order of the hits, or in the
   * reasons for which they are incomplete.
   */
  readonly different: number;
}

/**
 * Asks both copies of a tenant up to 200 questions and counts the different answers. A question is the beginning of a
 * stored text, and its query vector is the stored vector of that memory, so that no embedding provider is called.
 * Nothing is written.
 * @param options.now time at which the questions are asked, Unix ms
 * @param options.onProgress called with the number of questions asked so far
 */
export async function compareAnswers(
  one: MovedTenant,
  other: MovedTenant,
  options: { readonly config: Config; readonly now: number; readonly onProgress: (done: number) => void },
): Promise<ComparedAnswers> {
  const { store } = one;
  // The same numbers each time, so that a move that is repeated asks the same questions.
  const drawn = sampleMemories(store, {
    count: MAX_QUESTIONS,
    characters: QUESTION_CHARACTERS,
    random: createRandom(1),
  }).filter(({ content }) => content.trim() !== '');
  if (drawn.length === 0) return { questions: 0, different: 0 };
  const vectors = vectorsOf(store, drawn);
  const sides = [one, other].map((tenant) => openSide(tenant, store, vectors, options));
  try {
    let [questions, different] = [0, 0];
    for (const [done, memory] of drawn.entries()) {
      const [a, b] = [await ask(sides[0]!.context, memory, done), await ask(sides[1]!.context, memory, done)];
      if (a.words === b.words) questions += 1;
      if (a.words === b.words && !isDeepStrictEqual(a, b)) different += 1;
      options.onProgress(done + 1);
    }
    return { questions, different };
  } finally {
    for (const side of sides) side.tenant.close();
  }
}

interface GivenAnswer {
  /** The hits with their scores, best first. */
  readonly hits: readonly (readonly [id: string, score: number])[];
  /** Reasons for which the answer is degraded (incomplete), joined by commas; '' if it is complete. */
  readonly reasons: string;
  /** Notes of the lexical search: how it found its hits, and which words of the query it left out. */
  readonly words: string;
}

/**
 * Asks one copy for the 10 best hits. Questions with an odd `place` search only the memories of the sampled memory's
 * user.
 * @param place number of the question, from 0
 */
async function ask(context: ReadContext, { content, userId }: SampledMemory, place: number): Promise<GivenAnswer> {
  const query = {
    query: content,
    k: HITS,
    filter: place % 2 === 0 ? {} : { userIds: [userId] },
    minScore: 0,
    reinforce: false,
    isLogged: false,
  };
  const { result, stages } = await answerQuery(context, { query, defaults: {} });
  return {
    hits: result.hits.map(({ memory, score }) => [memory.id, score]),
    reasons: result.degradedReasons.join(),
    words: stages
      .filter(({ stage }) => stage.startsWith('lexical'))
      .map(({ note }) => note)
      .join('\n'),
  };
}

/** Query vectors of the questions, by a key made of model and text (`keyOf`). */
type Vectors = ReadonlyMap<string, Float32Array>;

const keyOf = (model: SpaceIdentity, text: string): string =>
  JSON.stringify([model.provider, model.model, model.dimensions, normal(text)]);
const normal = (text: string): string => text.normalize('NFC').replace(/\s+/g, ' ').trim();

function vectorsOf(store: Store, memories: readonly SampledMemory[]): Vectors {
  const models = findLiveModels(store);
  const vectors = new Map<string, Float32Array>();
  for (const model of models === undefined ? [] : distinctModels(models)) {
    for (const { memoryNo, content } of memories) {
      const found = findWholeVector(store, model, memoryNo);
      if (found !== undefined) vectors.set(keyOf(model, content), found.embedding);
    }
  }
  return vectors;
}

function openSide(
  { path, place }: MovedTenant,
  source: Store,
  vectors: Vectors,
  { config, now }: { readonly config: Config; readonly now: number },
): { readonly tenant: OpenTenant; readonly context: ReadContext } {
  const tenant = openTenant(path, { place, role: 'reader', identity: findLiveModels(source) ?? null, now });
  const context: ReadContext = {
    config: { ...config, OM_QUERY_DEADLINE_MS: DEADLINE_MS },
    clock: { now: () => now },
    logger: silentLogger,
    tracing: null,
    threads: 1,
    languageModel: null,
    querySourceOf: (model) => ({
      embedder: storedEmbedder(model),
      embedQuery: async (text) => vectors.get(keyOf(model, text)) ?? null,
    }),
    open: () => tenant,
  };
  return { tenant, context };
}

/** Makes an embedder that describes a model but embeds nothing, since the questions use stored vectors. */
function storedEmbedder({ provider, model, dimensions, encoding }: SpaceIdentity): Embedder {
  return {
    ...{ provider, model, dimensions, encoding },
    ...{ waypointThreshold: 1, isAnisotropic: false, vectorWeight: 0.5, cacheable: false },
    ...{ maxBatchTexts: 1, maxBatchTokens: 1, embed: async () => [] },
  };
}
