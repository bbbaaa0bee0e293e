import { createHash } from 'node:crypto';
import type { Bounds } from '../types.ts';
import { hasTags } from '../store/bounds.ts';
import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import {
  type AddItem,
  type IdempotencyClaim,
  type Memory,
  type MemoryFilter,
  type MemoryStream,
  type NewMemory,
  type Page,
  type StageTrace,
} from '../types.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import { isAskedWithin, within } from '../readers/recalls.ts';
import { eventMethods, logMethods } from './bound-logs.ts';
import { documentMethods } from './bound-documents.ts';
import { itemMethods, listMethods } from './bound-items.ts';
import { standingMethods } from './bound-standing.ts';
import { consolidationMethods } from './bound-consolidations.ts';
import { listed, reachOf, type Reach, refusal } from './bound-reach.ts';
import { joined } from './memory-lists.ts';
import { withoutTotals } from './without-totals.ts';

/**
 * Makes the view of a tenant for a caller that is bound to a user, to tags, or to both. Through it, memories and
 * documents outside the bounds are answered as if they did not exist, and what is written gets the user and the tags of
 * the bounds. Methods that cannot be bounded are refused. Every method of `Tenant` stands here on its own, so a new one
 * does not compile until somebody has decided how it is bounded.
 *
 * A method throws EngineError `forbidden` if the caller names another user than its own or if the method is refused,
 * and else what the tenant's own method throws, without numbers of the whole tenant (`withoutTotals`). Of an add, only
 * the items are rejected that name another user or supersede a memory outside the bounds.
 */
export function boundTenant(whole: Tenant, bounds: Bounds): Tenant {
  const tenant = withoutTotals(whole);
  const reach = reachOf(tenant, bounds);
  return {
    id: tenant.id,
    as: (keyId) => boundTenant(tenant.as(keyId), bounds),
    whileAdmitted: (check) => boundTenant(tenant.whileAdmitted(check), bounds),
    listAudit: refused,
    recordAction: (action, detail) => tenant.recordAction(action, detail),
    privacyPolicy: () => tenant.privacyPolicy(),
    putPrivacyPolicy: refused,
    exportLines: () => {
      throw refusal();
    },
    importLines: refused,
    rehearseImport: () => {
      throw refusal();
    },
    ...memoryMethods(tenant, reach),
    ...itemMethods(tenant, reach),
    ...listMethods(tenant, reach),
    ...logMethods(tenant, reach),
    ...eventMethods(tenant, reach),
    ...linkMethods(tenant, reach),
    ...queryMethods(tenant, reach),
    ...recallMethods(tenant, reach),
    ...documentMethods(tenant, reach),
    ...reflectionMethods(tenant, reach),
    ...consolidationMethods(tenant, reach),
    ...jobMethods(tenant, reach),
    ...modelMethods(tenant),
    previewDecay: refused,
    listBackups: refused,
    requestBackup: refused,
    putEval: refused,
    listEvals: refused,
    getEval: refused,
    deleteEval: refused,
    runEval: refused,
    listEvalRuns: refused,
    runDueEvals: refused,
    listErasures: refused,
    getErasure: refused,
    noteBatch: (part) => tenant.noteBatch(part),
    // What other keys sent may be about others.
    batchReceipt: async (id, options) =>
      options.writtenBy === undefined ? refused() : tenant.batchReceipt(id, options),
    ...standingMethods(tenant, reach),
    learnWeights: refused,
    listLearned: refused,
    acceptLearned: refused,
    revertLearned: refused,
  };
}

/**
 * Makes the methods of memories for a bound caller: memories outside its bounds are answered as not found, and what is
 * written gets the user and the tags of the bounds.
 */
function memoryMethods(tenant: Tenant, reach: Reach) {
  const {
    bounds,
    tags,
    reachedMemory,
    requireReached,
    reachedIds,
    reachedRevisions,
    withTags,
    onlyOwn,
    ownFilter,
    ownOf,
    heldSlices,
  } = reach;
  return {
    async addMemories(items, options = {}) {
      const named = items.flatMap((item) => (isRejected(item) ? [] : (item.supersedes ?? [])));
      const older = await reachedIds(named);
      const owned = items.map((item) => {
        if (isRejected(item)) return item;
        const isReached = item.supersedes === undefined || older.has(item.supersedes);
        return isReached ? orRefusal(() => ({ ...item, ...ownOf(item) })) : rejected(noReplaced());
      });
      const sources = (options.derived ?? []).flatMap(({ from }) =>
        from.filter((source) => typeof source === 'string'),
      );
      if ((await reachedIds(sources)).size < new Set(sources).size) throw new EngineError('not_found', 'no memory');
      const idempotency = options.idempotency && claimWithin(bounds, options.idempotency);
      return tenant.addMemories(owned, { ...options, idempotency, withinTags: tags });
    },
    async patchMemory(id, patch, options) {
      await reachedMemory(id);
      const owned = patch.tags === undefined ? patch : { ...patch, tags: withTags(patch.tags) };
      // The bounds are checked again in the commit, since the memory may leave them until then; so below.
      return tenant.patchMemory(id, owned, { ...options, withinTags: tags });
    },
    async deleteMemory(id) {
      await reachedMemory(id);
      return tenant.deleteMemory(id, { withinTags: tags });
    },
    async deleteMemories(filter) {
      const { userIds, sessionIds, files, writtenBy, tags: named = [] } = filter;
      // The bounds are no filter of the caller's: without one, the tenant refuses.
      const isNamed = named.length > 0 || [userIds, sessionIds, files, writtenBy].some((asked) => asked !== undefined);
      if (!isNamed) return tenant.deleteMemories(filter);
      // Empty tags would count as a condition, by which the receipt names what was deleted.
      const withinTags = tags.length === 0 ? undefined : tags;
      return tenant.deleteMemories({ ...filter, userIds: onlyOwn(userIds), withinTags });
    },
    async reinforceMemory(id, boost) {
      await reachedMemory(id);
      return tenant.reinforceMemory(id, boost, { withinTags: tags });
    },

    getMemory: reachedMemory,
    listMemories: (filter, page) => joined(streamWithin(tenant, reach, { filter, page })),
    streamMemories: (filter, page) => streamWithin(tenant, reach, { filter, page }),
    pageMemories: async (filter, page, signal) =>
      heldSlices(await tenant.pageMemories(ownFilter(filter), page, signal)),
    listRevisions: (id, page = {}) => joined(reachedRevisions(id, page)),
    streamRevisions: reachedRevisions,
    async timeline(id, around) {
      await reachedMemory(id);
      const timeline = await tenant.timeline(id, { ...around, tags });
      requireReached(timeline.anchor);
      return timeline;
    },
  } satisfies Partial<Tenant>;
}

/** Lists memories slice by slice, without those that have left the bounds since they were listed (`heldSlices`). */
function streamWithin(
  tenant: Tenant,
  { ownFilter, holds }: Reach,
  { filter, page }: { readonly filter: MemoryFilter; readonly page: Page },
): MemoryStream {
  const whole = tenant.streamMemories(ownFilter(filter), page);
  return {
    async *[Symbol.asyncIterator]() {
      for await (const slice of whole) yield slice.filter(holds);
    },
    get listed() {
      return whole.listed;
    },
  };
}

/**
 * Makes the methods of links for a bound caller: lists have only links and pairs of which both memories lie within its
 * bounds, and a change of any other link throws `not_found`.
 */
function linkMethods(tenant: Tenant, { tags, reachedMemory, reachedIds, onlyOwn }: Reach) {
  // As they were read, too: on a standby that is behind, a memory may still have its text from before it got the tags.
  const isReached = (memory: Memory) => hasTags(memory.tags, tags);
  const reachedPairs = async <Pair extends { readonly earlier: Memory; readonly later: Memory }>(
    pairs: readonly Pair[],
  ): Promise<Pair[]> => {
    const read = pairs.filter(({ earlier, later }) => isReached(earlier) && isReached(later));
    const reached = await reachedIds(read.flatMap(({ earlier, later }) => [earlier.id, later.id]));
    return read.filter(({ earlier, later }) => reached.has(earlier.id) && reached.has(later.id));
  };
  return {
    async listLinks(id) {
      await reachedMemory(id);
      const links = await tenant.listLinks(id);
      const reached = await reachedIds(links.map((link) => link.id));
      return links.filter((link) => reached.has(link.id));
    },
    async listProposals({ userId, limit }) {
      const wanted = { userId: onlyOwn(listed(userId))?.[0], limit, withinTags: tags };
      return reachedPairs(await tenant.listProposals(wanted));
    },
    async listNearDuplicates({ userId, ...asked }) {
      const wanted = { ...asked, userId: onlyOwn(listed(userId))?.[0], withinTags: tags };
      const { items, isCut } = await tenant.listNearDuplicates(wanted);
      return { items: await reachedPairs(items), isCut };
    },
    async linkMemories(link) {
      await Promise.all([reachedMemory(link.src), reachedMemory(link.dst)]);
      return tenant.linkMemories(link, { withinTags: tags });
    },
    async unlinkMemories(link) {
      await Promise.all([reachedMemory(link.src), reachedMemory(link.dst)]);
      return tenant.unlinkMemories(link, { withinTags: tags });
    },
    async supersedeMemory(supersession) {
      await Promise.all([reachedMemory(supersession.oldId), reachedMemory(supersession.newId)]);
      return tenant.supersedeMemory(supersession, { withinTags: tags });
    },
    async contradictMemories(contradiction) {
      await Promise.all([reachedMemory(contradiction.a), reachedMemory(contradiction.b)]);
      return tenant.contradictMemories(contradiction, { withinTags: tags });
    },
  } satisfies Partial<Tenant>;
}

/**
 * Makes the methods of queries, entities and statistics for a bound caller. Queries and entities see only memories
 * within its bounds. Statistics and provider calls of the whole tenant, and changes of the query defaults, are refused.
 */
function queryMethods(tenant: Tenant, { tags, reachedMemory, onlyOwn, ownFilter }: Reach) {
  return {
    async query(query, signal) {
      const answer = await tenant.query({ ...query, filter: ownFilter(query.filter) }, signal);
      return answer.trace === undefined ? answer : { ...answer, trace: withoutCounts(answer.trace) };
    },
    diff: async (options, signal) => tenant.diff({ ...options, filter: ownFilter(options.filter) }, signal),
    async explain(query, memoryId, signal) {
      const filter = ownFilter(query.filter);
      await reachedMemory(memoryId);
      const explained = await tenant.explain({ ...query, filter }, memoryId, signal);
      return { ...explained, trace: withoutCounts(explained.trace) };
    },
    retrievalDefaults: () => tenant.retrievalDefaults(),
    putRetrievalDefaults: refused,
    sectorStats: refused,
    listEntities: async (filter, page) =>
      tenant.listEntities({ ...filter, userId: onlyOwn(listed(filter.userId))?.[0], tags }, page),
    getEntity: async (name, named) => tenant.getEntity(name, onlyOwn(listed(named))?.[0], tags),
    stats: refused,
    listProviderCalls: refused,
    listProviderUsage: refused,
  } satisfies Partial<Tenant>;
}

/**
 * Leaves out the notes of the stages that tell how many memories there are outside of the bounds: how great a part of
 * all the searched users have, whether any text has a word, and whether an index was used.
 */
function withoutCounts(trace: readonly StageTrace[]): StageTrace[] {
  return trace.map(({ note, ...stage }) => {
    const isCounting = note === undefined || /^(plan$|lexical|dense)/.test(stage.stage);
    return isCounting ? stage : { ...stage, note };
  });
}

/**
 * Makes the methods of recalls for a bound caller. They reach the recalls whose query searched nothing outside its
 * bounds: only memories of its user, and only those with all its tags. Memories of such a recall that have left the
 * bounds since count as erased.
 */
function recallMethods(tenant: Tenant, { bounds, tags, reachedMemory, reachedIds, ownFilter }: Reach) {
  const reachedRecall = async (id: string) => {
    const recall = await tenant.getRecall(id);
    if (!isAskedWithin(recall, bounds)) throw new EngineError('not_found', 'no recall with this id is kept');
    const { scope, ...shown } = within(recall, [
      ...(await reachedIds(recall.candidates.map((candidate) => candidate.id))),
    ]);
    // The scope may count all memories of the query's users, those without the tags included.
    return tags.length > 0 || scope === undefined ? shown : { ...shown, scope };
  };
  return {
    async listRecalls({ memoryId, ...asked }) {
      if (memoryId !== undefined) await reachedMemory(memoryId);
      return tenant.listRecalls({ ...asked, memoryId, userId: bounds.userId ?? asked.userId, bounds });
    },
    getRecall: reachedRecall,
    async replayRecall(id, options, signal) {
      const { filter } = options.changes;
      const changes = filter === undefined ? options.changes : { ...options.changes, filter: ownFilter(filter) };
      const only = (await reachedRecall(id)).candidates.map((candidate) => candidate.id);
      return tenant.replayRecall(id, { ...options, changes, only }, signal);
    },
    async giveFeedback(id, verdict, memoryIds) {
      const { candidates } = await reachedRecall(id);
      const foreign = memoryIds.find((memoryId) => !candidates.some((candidate) => candidate.id === memoryId));
      if (foreign !== undefined) throw new EngineError('not_found', `memory ${foreign} is no hit of this recall`);
      const feedback = await tenant.giveFeedback(id, verdict, memoryIds);
      return feedback.filter(({ memoryId }) => candidates.some((candidate) => candidate.id === memoryId));
    },
  } satisfies Partial<Tenant>;
}

/**
 * Makes the methods of reflections for a bound caller: it requests and lists only those of its user. A key that is
 * bound to tags gets `forbidden`, since a reflection reads all memories of a user whatever their tags.
 */
function reflectionMethods(tenant: Tenant, { tags, ownerOf, ownJobs }: Reach) {
  return {
    async reflect(scope) {
      // A reflection reads memories of its user whatever their tags.
      if (tags.length > 0) throw refusal();
      const queued = await tenant.reflect({ ...scope, userId: ownerOf(scope.userId) });
      ownJobs.add(queued.jobId);
      return queued;
    },
    async listReflections(named, limit) {
      if (tags.length > 0) throw refusal();
      return tenant.listReflections(ownerOf(named), limit);
    },
  } satisfies Partial<Tenant>;
}

/**
 * Makes the methods of jobs for a bound caller: it finds only jobs that it requested, or whose memory, document or
 * user is within its bounds (`reachedJob`). It may wait for any write receipt, but cannot list, count or change jobs.
 */
function jobMethods(tenant: Tenant, { reachedJob }: Reach) {
  return {
    getJob: reachedJob,
    findJobs: refused,
    listJobs: refused,
    countJobs: refused,
    countWaitingJobs: refused,
    countActiveJobs: refused,
    oldestWaitingJobAt: refused,
    retryJob: refused,
    cancelJob: refused,
    discardJob: refused,
    waitFor: (token, timeoutMs, signal) => tenant.waitFor(token, timeoutMs, signal),
  } satisfies Partial<Tenant>;
}

/**
 * Makes the methods of the embedding model for a bound caller, which may ask what the model is, but not change it or
 * see the progress of a change.
 */
function modelMethods(tenant: Tenant) {
  return {
    embedding: () => tenant.embedding(),
    reembedStatus: refused,
    startReembed: refused,
    pauseReembed: refused,
    cancelReembed: refused,
  } satisfies Partial<Tenant>;
}

/** Whether a caller may reach only a part of its tenant: it is bound to a user or to tags. */
export function isBound({ userId, tags = [] }: Bounds): boolean {
  return userId !== undefined || tags.length > 0;
}

function refused(): Promise<never> {
  return Promise.reject(refusal());
}

function orRefusal(work: () => NewMemory): AddItem {
  try {
    return work();
  } catch (error) {
    if (!isEngineError(error, 'forbidden')) throw error;
    return rejected(error);
  }
}

const noReplaced = () => new EngineError('not_found', 'supersedes: no memory with this id');

/**
 * Adds a hash of the caller's bounds to the route of an idempotency claim, so that callers with different bounds who
 * send the same Idempotency-Key do not get each other's replies.
 */
function claimWithin({ userId, tags = [] }: Bounds, claim: IdempotencyClaim): IdempotencyClaim {
  const within = createHash('sha256')
    .update(JSON.stringify([userId ?? null, tags]), 'utf8')
    .digest('hex');
  return { ...claim, route: `${claim.route} ${within.slice(0, 16)}` };
}
