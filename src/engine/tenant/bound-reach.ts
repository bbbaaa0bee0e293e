import type { Bounds } from '../control/control-database.ts';
import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { Document, Job, Memory, MemoryFilter, Revision, RevisionPage } from '../types.ts';

/** What lies within the bounds of a caller; the methods of `boundTenant` are made of these. */
export interface Reach {
  readonly bounds: Bounds;
  /** Tags that everything within the bounds carries; empty for none. */
  readonly tags: readonly string[];
  /** Jobs that this caller made; some, like reflections, work on no single memory that would tell whose they are. */
  readonly ownJobs: Set<string>;
  /** Returns a memory within the bounds. Throws EngineError `not_found` for any other. */
  reachedMemory(id: string): Promise<Memory>;
  /** Returns those of the ids whose memories lie within the bounds, without reading their texts. */
  reachedIds(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Returns the revisions of a memory within the bounds, newest first, since it came within them: what was said before
   * was said to others. Throws EngineError `not_found` for any other memory.
   */
  reachedRevisions(id: string, page: RevisionPage): AsyncGenerator<readonly Revision[]>;
  /** Returns a document within the bounds. Throws EngineError `not_found` for any other. */
  reachedDocument(id: string): Promise<Document>;
  /** Returns a job that works on something within the bounds. Throws EngineError `not_found` for any other. */
  reachedJob(id: string): Promise<Job>;
  /** Whether `read` finds something, which means that it does not throw `not_found`. */
  isReached(read: () => Promise<unknown>): Promise<boolean>;
  /** The given tags and those of the bounds. */
  withTags(given: readonly string[]): string[];
  /** The users of a filter within the bounds. Throws EngineError `forbidden` if it names another. */
  onlyOwn(given: readonly string[] | undefined): readonly string[] | undefined;
  /** The user of something new; '' names nobody. Throws EngineError `forbidden` for another user. */
  ownerOf(named: string): string;
  /** The user and the tags of something new. Throws EngineError `forbidden` for another user. */
  ownOf(item: Pick<Memory, 'userId' | 'tags'>): { readonly userId: string; readonly tags: string[] };
  /** A filter within the bounds. Throws EngineError `forbidden` if it names another user. */
  ownFilter(filter: MemoryFilter): MemoryFilter;
}

export function reachOf(tenant: Tenant, bounds: Bounds): Reach {
  const { userId, tags = [] } = bounds;
  const holds = (item: Memory | Document) =>
    (userId === undefined || item.userId === userId) && tags.every((tag) => item.tags.includes(tag));
  const reach: Reach = {
    bounds,
    tags,
    ownJobs: new Set(),
    async reachedMemory(id) {
      const memory = await tenant.getMemory(id);
      if (!holds(memory)) throw new EngineError('not_found', 'no memory with this id');
      return memory;
    },
    reachedIds: async (ids) =>
      new Set(
        await tenant.listPresent(ids, {
          userIds: userId === undefined ? undefined : [userId],
          withinTags: tags,
        }),
      ),
    async *reachedRevisions(id, page) {
      await reach.reachedMemory(id);
      yield* tags.length === 0 ? tenant.streamRevisions(id, page) : revisionsWithin(tenant, tags, { id, page });
    },
    async reachedDocument(id) {
      const document = await tenant.getDocument(id);
      if (!holds(document)) throw new EngineError('not_found', 'no document with this id');
      return document;
    },
    async reachedJob(id) {
      const job = await tenant.getJob(id);
      const { memoryId, documentId } = job;
      const isOwn =
        reach.ownJobs.has(id) ||
        (memoryId !== null && (await reach.isReached(() => reach.reachedMemory(memoryId)))) ||
        (documentId !== null && (await reach.isReached(() => reach.reachedDocument(documentId))));
      if (!isOwn) throw new EngineError('not_found', 'no job with this id');
      return job;
    },
    async isReached(read) {
      try {
        await read();
        return true;
      } catch (error) {
        if (isEngineError(error, 'not_found')) return false;
        throw error;
      }
    },
    withTags: (given) => [...new Set([...given, ...tags])],
    onlyOwn(given) {
      for (const named of given ?? []) requireOwnUser(bounds, named);
      return userId === undefined || given?.length === 0 ? given : [userId];
    },
    ownerOf(named) {
      if (named !== '') requireOwnUser(bounds, named);
      return userId ?? named;
    },
    ownOf: (item) => ({ userId: reach.ownerOf(item.userId), tags: reach.withTags(item.tags) }),
    ownFilter: (filter) => ({
      ...filter,
      userIds: reach.onlyOwn(filter.userIds),
      withinTags: tags,
    }),
  };
  return reach;
}

/**
 * The newest revisions of a memory up to, and without, the update that brought it within the tags. They are read from
 * the newest on, since only the updates after a revision tell whether it is within.
 */
async function* revisionsWithin(
  tenant: Tenant,
  tags: readonly string[],
  { id, page }: { readonly id: string; readonly page: RevisionPage },
): AsyncGenerator<readonly Revision[]> {
  let { limit = Number.MAX_SAFE_INTEGER } = page;
  const { before = Number.MAX_SAFE_INTEGER } = page;
  for await (const slice of tenant.streamRevisions(id, {})) {
    const end = slice.findIndex(({ replaced }) => lacksTags(replaced['tags'], tags));
    const within = end === -1 ? slice : slice.slice(0, end);
    const shown = within.filter(({ version }) => version < before).slice(0, limit);
    limit -= shown.length;
    yield shown;
    if (end !== -1 || limit === 0) return;
  }
}

/** Whether these replaced tags, undefined where an update left them alone, lack one of the tags. */
function lacksTags(replaced: unknown, tags: readonly string[]): boolean {
  return Array.isArray(replaced) && !tags.every((tag) => replaced.includes(tag));
}

/**
 * Checks that a request of a bound caller names nobody else.
 * @param named user that the request names; undefined, null and '' name nobody in particular
 * @throws EngineError `forbidden`
 */
export function requireOwnUser({ userId }: Bounds, named: string | null | undefined): void {
  if (userId === undefined || named == null || named === userId) return;
  throw new EngineError('forbidden', 'this key is bound to one user, and the request names another');
}

/** Makes the error of a request that is about more than what a key is bound to. */
export function refusal(): EngineError {
  return new EngineError('forbidden', 'this key is bound to a user or tags, and this is about more than them');
}

/** Makes the list of users that a filter asks for out of one; undefined asks for all. */
export const listed = (userId: string | undefined) => (userId === undefined ? undefined : [userId]);
