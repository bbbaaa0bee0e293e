import { setImmediate as afterThisTurn } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { RecallEffects } from '../commands/reinforce.ts';
import type { Config } from '../config.ts';
import type { Embedder, VectorIndex } from '../ports.ts';
import { explainMemory } from '../retrieve/explain-memory.ts';
import { keepRecall } from '../retrieve/keep-recall.ts';
import type { StageResults } from '../retrieve/stage-results.ts';
import type { RecallToKeep } from '../store/recalls.ts';
import { completeQuery } from '../retrieve/options.ts';
import { type QuerySpace, retrieve, type RetrieveContext } from '../retrieve/retrieve.ts';
import { distinctModels, type StoredModel } from '../store/live-model.ts';
import { readMemories } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { createWorkBudget } from '../store/work-budget.ts';
import type {
  MemoryExplanation,
  MemoryQuery,
  Profile,
  QueryResult,
  RecallHead,
  RetrievalOptions,
  StageTrace,
} from '../types.ts';
import type { ReadContext } from './read-context.ts';
import { workLimits } from './work-limits.ts';

/** A query, with the tenant's own default options (those of the settings are added). */
interface Question {
  readonly query: MemoryQuery;
  readonly defaults: RetrievalOptions;
}

/** The answer to a query, and what the caller records and writes because of the query. */
interface Answer {
  readonly result: QueryResult;
  /** Profile by which the hits were scored. */
  readonly profile: Profile;
  /** Stages of the query that ran, with the time of each. */
  readonly stages: readonly StageTrace[];
  /**
   * The memories and waypoints (automatic links) that the query reinforces; null if it does not reinforce or has no
   * hits.
   */
  readonly effects: RecallEffects | null;
  /**
   * Resolves to what the recall log stores of the answer; it is computed after the turn in which the answer was made.
   * Null if the recall log does not keep the answer. It may reject, which the caller has to handle.
   */
  readonly later: Promise<RecallToKeep> | null;
}

/**
 * Answers a query of a tenant.
 * @throws what `retrieve` throws
 */
export async function answerQuery(
  context: ReadContext,
  { query, defaults }: Question,
  signal?: AbortSignal,
): Promise<Answer> {
  let stages: readonly StageTrace[] = [];
  let later: Promise<RecallToKeep> | null = null;
  let effects: RecallEffects | null = null;
  const { open, config, clock } = context;
  const reinforces = query.reinforce ?? config.OM_DECAY_REINFORCE_ON_QUERY;
  const isRecallLogged = config.OM_RECALL_DAYS > 0 && query.isLogged !== false;
  const onRecall = (recall: StageResults, answer: QueryResult) => {
    stages = recall.trace;
    if (reinforces) effects = effectsOf(recall, answer, clock.now());
    if (!isRecallLogged) return;
    const model = modelOf(open().live);
    later = afterThisTurn().then(() => keepRecall(recall, answer, { request: query, defaults, model }));
  };
  const begun = beginInRead(open, (read) => {
    const retrieving = retrieveContext(context, defaults, { onRecall, read });
    const { profile } = completeQuery(query, retrieving.defaults);
    const answer = retrieve(retrieving, query, signal);
    // It is awaited below, unless the read ends with an error of its own.
    answer.catch(() => {});
    return { profile, answer };
  });
  const result = await begun.answer;
  return { result, profile: begun.profile, stages, effects, later };
}

/**
 * Begins a query. On PostgreSQL (`ahead` is not null) it begins inside one read, which lasts until the query first
 * waits, so that the models and the changes since the last query are asked of the server together, in one round trip. A
 * file has no server to wait for.
 * @param begin gets a `read` for the stages of the query, which go on in the same snapshot if the query has not waited
 *   for a model or an index; undefined for a file
 */
function beginInRead<T>(open: ReadContext['open'], begin: (read: Store['read'] | undefined) => T): T {
  const { store } = open();
  if (store.ahead === null) return begin(undefined);
  const read = store.ahead.readInOneTurn();
  return read(() => begin((work) => (open().store === store ? read(work) : open().store.read(work))));
}

const modelOf = (live: StoredModel | null): RecallHead['model'] =>
  live && { provider: live.provider, model: live.model, dimensions: live.dimensions };

/**
 * Explains why a memory is or is not among the hits of a query.
 * @throws what `explainMemory` throws
 */
export function explainAnswer(
  context: ReadContext,
  { query, defaults, memoryId }: Question & { readonly memoryId: string },
  signal?: AbortSignal,
): Promise<MemoryExplanation> {
  return explainMemory(retrieveContext(context, defaults), query, memoryId, signal);
}

/**
 * Lists the memories that a recall (answered query) reinforces, and the links on the paths to them, of which
 * `applyRecalls` reinforces the waypoints; null without hits.
 * @param at time of the recall, Unix ms
 */
function effectsOf({ packing }: StageResults, { hits }: QueryResult, at: number): RecallEffects | null {
  if (hits.length === 0) return null;
  const paths = packing.packed.map(({ candidate: { row, arrival } }, place) =>
    // The path of a hit that the query found directly has only this hit.
    hits[place]!.path.length === 1 ? [row.memoryNo] : [...arrival!.path, row.memoryNo],
  );
  return {
    memories: paths.map((steps) => steps.at(-1)!),
    waypoints: paths.flatMap((steps) => steps.slice(1).map((to, hop): [number, number] => [steps[hop]!, to])),
    at,
  };
}

function retrieveContext(
  context: ReadContext,
  defaults: RetrievalOptions,
  more: Pick<RetrieveContext, 'onRecall' | 'read'> = {},
): RetrieveContext {
  const { config, clock, logger, tracing, languageModel } = context;
  const budget = createWorkBudget(workLimits(config));
  const { liveModels } = context.open();
  const [live = null, ...further] = liveModels === null ? [] : distinctModels(liveModels);
  const first = new TenantSpace(context, live);
  const furtherSpaces = further.map((model) => new TenantSpace(context, model));
  return Object.assign(first, {
    isModelUnreachable: live !== null && [first, ...furtherSpaces].some(({ embedder }) => embedder === null),
    furtherSpaces,
    asksOneByOne: !config.OM_ADV_EMBED_PARALLEL,
    languageModel,
    logger,
    clock,
    defaults: [defaults, settingsDefaults(config)],
    budget,
    newId: uuidv7,
    tracing,
    readMemories,
    ...more,
  });
}

/**
 * What one query searches: the tenant's file, with the vectors of one model. `embedder` is null if the settings do not
 * say how to reach the model. It is a class because an object literal with a getter would leave a hidden class behind
 * for each query (see `toMemory`).
 */
class TenantSpace implements QuerySpace {
  readonly embedder: Embedder | null;
  readonly modelNo: number | null;
  readonly embedQuery: QuerySpace['embedQuery'];
  readonly #open: ReadContext['open'];

  /**
   * Creates the space of a model.
   * @param live the model by whose vectors the query searches; null to search by words alone
   */
  constructor({ open, querySourceOf }: ReadContext, live: StoredModel | null) {
    const querySource = live && querySourceOf(live);
    this.embedder = querySource?.embedder ?? null;
    this.modelNo = live?.modelNo ?? null;
    this.embedQuery = querySource?.embedQuery ?? (async () => null);
    this.#open = open;
  }

  get store(): Store {
    return this.#open().store;
  }

  /**
   * Vector index of the space's model, which stays the same even if another model went live since the query began; null
   * without a model, and where the model has no index.
   */
  get index(): VectorIndex | null {
    return (this.modelNo === null ? null : this.#open().indexes.get(this.modelNo)) ?? null;
  }
}

/** Returns the default options that the settings give the queries of every tenant. */
function settingsDefaults({ OM_MIN_SCORE }: Config): RetrievalOptions {
  return { minScore: OM_MIN_SCORE };
}
