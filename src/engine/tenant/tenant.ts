import { setTimeout as pause } from 'node:timers/promises';
import fs from 'node:fs';
import { v7 as uuidv7 } from 'uuid';
import { addReceipts, EMPTY_RECEIPT } from '../commands/erase.ts';
import { decodeToken } from '../commands/token.ts';
import type { Config } from '../config.ts';
import { removeUpload } from '../documents/uploads.ts';
import type { Tenant } from '../engine.ts';
import { resolveName } from '../entities/extract.ts';
import { foldName } from '../entities/modes.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { observeStages } from '../metrics.ts';
import type { Embedder, VectorIndex } from '../ports.ts';
import { explainMemory } from '../retrieve/explain-memory.ts';
import { completeQuery, requireReranker } from '../retrieve/options.ts';
import { type QuerySpace, retrieve, type RetrieveContext } from '../retrieve/retrieve.ts';
import { listMatchingDocuments, readProvenance } from '../store/documents.ts';
import { countWaypoints, listLinks } from '../store/edges.ts';
import { countEmbedLogs, listEmbedLogs } from '../store/embeddings.ts';
import { findEntity, listEntities } from '../store/entities.ts';
import { walBytes } from '../store/file-on-disk.ts';
import { compileFilter } from '../store/filter.ts';
import {
  countActive,
  countJobs,
  countJobsOfKind,
  countWaiting,
  getJob,
  hasUnfinishedBetween,
  listJobs,
  oldestWaitingAt,
  summariseJobs,
} from '../store/jobs.ts';
import { distinctModels, type StoredModel } from '../store/live-model.ts';
import {
  countByState,
  findSeqs,
  getMemoryRow,
  listMemories,
  readMemories,
  sectorStats,
  toMemory,
} from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listUsage } from '../store/provider-usage.ts';
import { findUserNo, listReflections } from '../store/reflections.ts';
import { listRevisions } from '../store/revisions.ts';
import { readTimeline } from '../store/timeline.ts';
import { countVectors } from '../store/vectors.ts';
import type { MemoryQuery, Provenance, QueryResult, RetrievalOptions, StageTrace } from '../types.ts';
import { putRetrievalDefaults, readRetrievalDefaults } from './retrieval-defaults.ts';
import { createDocumentMethods } from './tenant-documents.ts';
import type { TenantOptions } from './tenant-options.ts';
import { createReembedMethods } from './tenant-reembed.ts';

const DELETE_SLICE = 100;
const POLL_MIN_MS = 4;
const POLL_MAX_MS = 50;

/** Reads on this thread's own connection, writes through the writer. */
export function createTenant(options: TenantOptions): Tenant {
  const { path, config, clock, metrics, writer, dispatcher, control } = options;
  const store = () => options.open().store;
  const now = () => clock.now();
  const { eraseAbandoned, writeDelete, ...documents } = createDocumentMethods(options);

  return {
    id: options.id,
    ...documents,
    ...createReembedMethods(options),

    async addMemories(items, addOptions = {}) {
      const reply = await writer.write(path, 'addMemories', { items, options: addOptions });
      await failpoint('after-accept-commit');
      if (!reply.replayed) {
        for (const { kind } of reply.outcomes) metrics.adds.inc({ outcome: kind });
        if (reply.token !== null) dispatcher.dispatch(path, 'encode');
      }
      return reply;
    },

    async patchMemory(id, patch, { ifVersion } = {}) {
      const memory = await writer.write(path, 'patchMemory', { id, patch, ifVersion });
      dispatcher.dispatch(path, 'encode');
      return memory;
    },

    async deleteMemory(id) {
      const document = provenanceOf(store(), id);
      // The root stands for the whole.
      if (document?.chunk === null) return documents.deleteDocument(document.documentId);
      const receipt = await writer.write(path, 'deleteMemory', { id });
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    async deleteMemories(filter) {
      if (Object.entries(filter).every(saysNothing)) {
        throw new EngineError('invalid', 'a delete needs a filter: user_id, session_id or tags');
      }
      let receipt = EMPTY_RECEIPT;
      for (;;) {
        const slice = await writeDelete(
          () => writer.write(path, 'deleteMatching', { filter, limit: DELETE_SLICE }),
          () => listMatchingDocuments(store(), filter, DELETE_SLICE),
        );
        receipt = addReceipts(receipt, slice);
        if (slice.memories < DELETE_SLICE && slice.documents < DELETE_SLICE) break;
      }
      receipt = addReceipts(receipt, await eraseAbandoned());
      dispatcher.dispatch(path, 'link');
      return receipt;
    },

    reinforceMemory: (id, boost) => writer.write(path, 'reinforceMemory', { id, boost }),

    getMemory: async (id) => toMemory(getMemoryRow(store(), id, now()), now()),
    listMemories: async (filter, page) => listMemories(store(), filter, page, now()),
    listRevisions: async (id) => listRevisions(store(), getMemoryRow(store(), id, now()).seq),
    listLinks: async (id) => listLinks(store(), getMemoryRow(store(), id, now()).seq),
    linkMemories: (link) => writer.write(path, 'linkMemories', link),
    unlinkMemories: (link) => writer.write(path, 'unlinkMemories', link),
    supersedeMemory: (supersession) => writer.write(path, 'supersedeMemory', supersession),
    contradictMemories: (contradiction) => writer.write(path, 'contradictMemories', contradiction),
    timeline: async (id, around) => readTimeline(store(), id, { ...around, now: now() }),
    sectorStats: async () => sectorStats(store(), now()),
    listEntities: async ({ prefix, userId }, page) =>
      listEntities(store(), { prefix: foldName(prefix), userId, filter: compileFilter({}, now()) }, page),
    async getEntity(name, userId) {
      const filter = compileFilter({ userIds: userId === undefined ? undefined : [userId] }, now());
      // A name under another spelling than its own: `k8s` is counted as `kubernetes`.
      const found = [...new Set([foldName(name), resolveName(name)])]
        .map((folded) => store().read(() => findEntity(store(), folded, { userId, filter })))
        .find((entity) => entity !== undefined);
      if (found === undefined) throw new EngineError('not_found', 'no memory mentions this name');
      return found;
    },

    query: runQuery,
    explain: (query, memoryId, signal) => explainMemory(retrieveContext(), query, memoryId, signal),
    retrievalDefaults: async () => readRetrievalDefaults(control, options.id),
    async putRetrievalDefaults(defaults) {
      requireReranker(defaults, options.languageModel);
      putRetrievalDefaults(control, options.id, defaults);
    },

    async stats() {
      const current = store();
      return current.read(() => {
        const byState = countByState(current);
        return {
          memories: byState.queued + byState.ready + byState.failed,
          byState,
          vectors: countVectors(current),
          waypoints: countWaypoints(current),
          jobs: countJobs(current),
          databaseBytes: fs.statSync(path).size,
          walBytes: walBytes(path),
        };
      });
    },

    listProviderCalls: async (filter, page) => ({
      items: listEmbedLogs(store(), filter, page),
      total: countEmbedLogs(store(), filter),
    }),
    listProviderUsage: async (since) => listUsage(store(), { since }),

    getJob: async (id) => getJob(store(), id),
    async listJobs(filter) {
      const { state, kind } = filter;
      const summary = summariseJobs(store());
      const { counts } = summary;
      const all = state === undefined ? Object.values(counts).reduce((sum, n) => sum + n, 0) : counts[state];
      const total = kind === undefined ? all : countJobsOfKind(store(), counts, kind, state);
      return { items: listJobs(store(), filter), total, ...summary };
    },
    countJobs: async () => countJobs(store()),
    countWaitingJobs: async () => countWaiting(store()),
    countActiveJobs: async () => countActive(store()),
    oldestWaitingJobAt: async () => oldestWaitingAt(store()),

    async retryJob(id) {
      const job = await writer.write(path, 'retryJob', { id });
      dispatcher.dispatch(path, job.step);
      return job;
    },
    async cancelJob(id) {
      const job = await writer.write(path, 'cancelJob', { id });
      if (job.kind === 'document') await eraseAbandoned();
      metrics.finishedJobs.inc({ state: 'cancelled' });
      return job;
    },
    async discardJob(id) {
      const upload = await writer.write(path, 'discardJob', { id });
      removeUpload(path, upload);
    },

    async reflect(scope) {
      if (config.OM_LLM_MODEL === undefined) {
        throw new EngineError('invalid', 'there is no language model to reflect by: set OM_LLM_MODEL');
      }
      const owed = await writer.write(path, 'requestReflection', scope);
      dispatcher.dispatch(path, 'reason');
      return owed;
    },
    async listReflections(userId, limit) {
      const userNo = findUserNo(store(), userId);
      if (userNo === undefined) return [];
      const seqs = listReflections(store(), userNo, { visible: compileFilter({}, now()), limit });
      const memories = readMemories(store(), seqs, now());
      return seqs.flatMap((seq) => memories.get(seq) ?? []);
    },

    async waitFor(token, timeoutMs, signal) {
      const { first, last } = decodeToken(token, options.open().storeId);
      const deadline = performance.now() + timeoutMs;
      for (let pollMs = POLL_MIN_MS; ; pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5)) {
        if (!hasUnfinishedBetween(store(), first, last)) return true;
        const leftMs = deadline - performance.now();
        if (leftMs <= 0 || signal?.aborted) return false;
        await pause(Math.min(pollMs, leftMs), undefined, signal ? { signal } : {}).catch(() => {});
      }
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
    if (query.reinforce ?? config.OM_DECAY_REINFORCE_ON_QUERY) owe(result);
    metrics.queries.observe((performance.now() - started) / 1000);
    metrics.queriesByProfile.inc({ profile });
    metrics.queryHits.observe(result.hits.length);
    if (result.hits.length === 0) metrics.emptyQueries.inc();
    return result;
  }

  /** Notes what this recall owes the memories it returned and the waypoints it walked. */
  function owe(result: QueryResult): void {
    if (result.hits.length === 0) return;
    const ids = new Set(result.hits.flatMap((hit) => hit.path));
    const seqs = findSeqs(store(), [...ids]);
    const numbers = (path: readonly string[]) => path.map((id) => seqs.get(id)).filter((seq) => seq !== undefined);
    const paths = result.hits.map((hit) => numbers(hit.path));
    options.recalls.add(path, {
      memories: paths.map((steps) => steps.at(-1)).filter((seq) => seq !== undefined),
      waypoints: paths.flatMap((steps) =>
        steps.slice(1).map((to, hop): [number, number] => [steps[hop] as number, to]),
      ),
      at: now(),
    });
  }
}

/**
 * The tenant's file as one query asks it for a model's vectors. A class, as a literal with a getter would leave a hidden class behind each
 * time (see `toMemory`).
 */
class TenantSpace implements QuerySpace {
  readonly embedder: Embedder | null;
  readonly modelNo: number | null;
  readonly embedQuery: QuerySpace['embedQuery'];
  readonly #open: TenantOptions['open'];

  /** @param live null for none */
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

  /** Of the model that was live at the beginning, whichever is when it is used. */
  get index(): VectorIndex | null {
    return (this.modelNo === null ? null : this.#open().indexes.get(this.modelNo)) ?? null;
  }
}

/** Where a memory stands in its document; undefined for what no document brought, and for no memory. */
function provenanceOf(store: Store, id: string): Provenance | undefined {
  const seq = findSeqs(store, [id]).get(id);
  return seq === undefined ? undefined : readProvenance(store, [seq]).get(seq);
}

/** A condition that every memory meets: a delete by nothing else would empty the tenant. */
function saysNothing([name, condition]: [string, unknown]): boolean {
  if (condition === undefined) return true;
  return (name === 'tags' || name === 'metadata') && Object.keys(condition as object).length === 0;
}

/** What the settings say about every tenant's queries. */
function settingsDefaults({ OM_MIN_SCORE }: Config): RetrievalOptions {
  return { minScore: OM_MIN_SCORE };
}
