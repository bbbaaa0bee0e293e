import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import type { Tenant } from '../engine.ts';
import { observeStages } from '../metrics.ts';
import type { Embedder, VectorIndex } from '../ports.ts';
import { explainMemory } from '../retrieve/explain-memory.ts';
import { completeQuery, requireReranker } from '../retrieve/options.ts';
import { type QuerySpace, retrieve, type RetrieveContext } from '../retrieve/retrieve.ts';
import { distinctModels, type StoredModel } from '../store/live-model.ts';
import { findMemoryNos, readMemories } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import type { MemoryQuery, QueryResult, RetrievalOptions, StageTrace } from '../types.ts';
import { putRetrievalDefaults, readRetrievalDefaults } from './retrieval-defaults.ts';
import type { TenantOptions } from './tenant-options.ts';

type QueryMethods = Pick<Tenant, 'query' | 'explain' | 'retrievalDefaults' | 'putRetrievalDefaults'>;

/** Makes the methods by which a tenant answers queries, and shows and sets its defaults for them. */
export function createQueryMethods(options: TenantOptions): QueryMethods {
  const { path, config, clock, metrics, control } = options;
  const store = () => options.open().store;
  const now = () => options.clock.now();
  return {
    query: runQuery,
    explain: (query, memoryId, signal) => explainMemory(retrieveContext(), query, memoryId, signal),
    retrievalDefaults: async () => readRetrievalDefaults(control, options.id),
    async putRetrievalDefaults(defaults) {
      requireReranker(defaults, options.languageModel);
      putRetrievalDefaults(control, options.id, defaults);
    },
  };

  function retrieveContext(): RetrieveContext {
    const { liveModels } = options.open();
    const [live = null, ...further] = liveModels === null ? [] : distinctModels(liveModels);
    const first = new TenantSpace(options, live);
    const furtherSpaces = further.map((model) => new TenantSpace(options, model));
    return Object.assign(first, {
      isModelUnreachable: live !== null && [first, ...furtherSpaces].some(({ embedder }) => embedder === null),
      furtherSpaces,
      asksOneByOne: !config.OM_ADV_EMBED_PARALLEL,
      languageModel: options.languageModel,
      logger: options.logger,
      clock,
      defaults: [readRetrievalDefaults(control, options.id), settingsDefaults(config)],
      newId: uuidv7,
      tracing: options.tracing,
      onStages: (trace: readonly StageTrace[]) => observeStages(metrics, trace),
      readMemories,
    });
  }

  async function runQuery(query: MemoryQuery, signal?: AbortSignal): Promise<QueryResult> {
    const started = performance.now();
    const context = retrieveContext();
    const profile = completeQuery(query, context.defaults).profile;
    const result = await retrieve(context, query, signal);
    if (result.degraded) metrics.degradedQueries.inc();
    if (query.reinforce ?? config.OM_DECAY_REINFORCE_ON_QUERY) noteRecall(result);
    metrics.queries.observe((performance.now() - started) / 1000);
    metrics.queriesByProfile.inc({ profile });
    metrics.queryHits.observe(result.hits.length);
    if (result.hits.length === 0) metrics.emptyQueries.inc();
    return result;
  }

  /** Notes that a recall reinforces the memories that it returned and the waypoints on the paths to them. */
  function noteRecall(result: QueryResult): void {
    if (result.hits.length === 0) return;
    const ids = new Set(result.hits.flatMap((hit) => hit.path));
    const memoryNos = findMemoryNos(store(), [...ids]);
    const numbers = (path: readonly string[]) =>
      path.map((id) => memoryNos.get(id)).filter((memoryNo) => memoryNo !== undefined);
    const paths = result.hits.map((hit) => numbers(hit.path));
    options.recalls.add(path, {
      memories: paths.map((steps) => steps.at(-1)).filter((memoryNo) => memoryNo !== undefined),
      waypoints: paths.flatMap((steps) =>
        steps.slice(1).map((to, hop): [number, number] => [steps[hop] as number, to]),
      ),
      at: now(),
    });
  }
}

/**
 * The tenant's file as one query searches it by one model's vectors. `embedder` is null if the settings do not reach
 * the model. It is a class because an object literal with a getter would leave a hidden class behind with each query
 * (see `toMemory`).
 */
class TenantSpace implements QuerySpace {
  readonly embedder: Embedder | null;
  readonly modelNo: number | null;
  readonly embedQuery: QuerySpace['embedQuery'];
  readonly #open: TenantOptions['open'];

  /** @param live the model by whose vectors the query searches; null to search by words alone */
  constructor({ open, questionerOf }: TenantOptions, live: StoredModel | null) {
    const questioner = live && questionerOf(live);
    this.embedder = questioner?.embedder ?? null;
    this.modelNo = live?.modelNo ?? null;
    this.embedQuery = questioner?.embedQuery ?? (async () => null);
    this.#open = open;
  }

  get store(): Store {
    return this.#open().store;
  }

  /** Vector index of the model that was live when the query began, even if another went live since; null for none. */
  get index(): VectorIndex | null {
    return (this.modelNo === null ? null : this.#open().indexes.get(this.modelNo)) ?? null;
  }
}

/** Returns the defaults that the settings give every tenant's queries. */
function settingsDefaults({ OM_MIN_SCORE }: Config): RetrievalOptions {
  return { minScore: OM_MIN_SCORE };
}
