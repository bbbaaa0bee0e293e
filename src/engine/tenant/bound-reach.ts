import type { Bounds } from '../types.ts';
import type { Tenant } from '../engine.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { Document, Job, Memory, MemoryFilter, MemorySlices, Revision, RevisionPage } from '../types.ts';

/**
 * Checks whether data is within the bounds of a caller's key, for the methods of `boundTenant`. The bounds are a user,
 * tags, or both: a memory or document is within them if it belongs to that user and has all of these tags.
 */
export interface Reach {
  readonly bounds: Bounds;
  /** Tags that everything within the bounds must have; empty if the key is bound to no tags. */
  readonly tags: readonly string[];
  /**
   * Ids of the jobs of reflections and consolidations that this caller requested through this object, so that it finds
   * them at their end, too: a reflection that is done does not say any more whose it was.
   */
  readonly ownJobs: Set<string>;
  /** Tells whether a memory or document, as it was read, is within the bounds. */
  holds(found: Memory | Document): boolean;
  /**
   * Leaves out of the slices of a page the memories that are outside of the bounds as they were read. Each slice is
   * read when it is asked for, which may be long after the page was found, so a memory may have left the bounds.
   */
  heldSlices(page: MemorySlices): MemorySlices;
  /** Returns a memory within the bounds. Throws EngineError `not_found` for any other. */
  reachedMemory(id: string): Promise<Memory>;
  /**
   * Checks a memory as another read has found it, which may hold its text from before it came into the bounds or after
   * it left them. Throws EngineError `not_found` if the memory is outside of the bounds there.
   */
  requireReached(memory: Memory): void;
  /**
   * Returns those of the ids that belong to memories within the bounds. It does not read the texts of these memories.
   */
  reachedIds(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Returns the revisions of a memory within the bounds, newest first: for a key that is bound to tags only those that
   * are newer than the update that gave the memory these tags, because earlier texts may belong to others. Throws
   * EngineError `not_found` for a memory outside the bounds.
   */
  reachedRevisions(id: string, page: RevisionPage): AsyncGenerator<readonly Revision[]>;
  /** Returns a document within the bounds. Throws EngineError `not_found` for any other. */
  reachedDocument(id: string): Promise<Document>;
  /**
   * Returns a job that this caller requested, or whose memory or document is within the bounds, or, without bound tags,
   * whose user is the caller's. Throws EngineError `not_found` for any other.
   */
  reachedJob(id: string): Promise<Job>;
  /**
   * Tells whether `read` finds what it looks for: false if it throws `not_found`; other errors are thrown. `read` must
   * check the bounds by itself, as `reachedMemory` and `reachedDocument` do: what it returns is not looked at.
   */
  isReached(read: () => Promise<unknown>): Promise<boolean>;
  /** Returns the given tags together with those of the bounds, each once. */
  withTags(given: readonly string[]): string[];
  /**
   * Returns the users of a filter, narrowed to the caller's own; undefined stands for all users. Without a bound user,
   * or for an empty list, it returns `given`. Throws EngineError `forbidden` if `given` names another user than the
   * caller's own.
   */
  onlyOwn(given: readonly string[] | undefined): readonly string[] | undefined;
  /**
   * Returns the user of something that is stored or read: the caller's own, or `named` if no user is bound. `named` is
   * '' if the request names nobody. Throws EngineError `forbidden` if it names another user than the caller's own.
   */
  ownerOf(named: string): string;
  /**
   * Returns the user and the tags with which something new is stored. Throws EngineError `forbidden` if `item` names
   * another user than the caller's own.
   */
  ownOf(item: Pick<Memory, 'userId' | 'tags'>): { readonly userId: string; readonly tags: string[] };
  /**
   * Returns a filter narrowed to the bounds. Throws EngineError `forbidden` if it names another user than the caller's
   * own.
   */
  ownFilter(filter: MemoryFilter): MemoryFilter;
}

/** Makes the checks of the bounds of a caller's key, which look data up through `tenant`. */
export function reachOf(tenant: Tenant, bounds: Bounds): Reach {
  const { userId, tags = [] } = bounds;
  const reach: Reach = {
    bounds,
    tags,
    ownJobs: new Set(),
    holds: (found) =>
      (userId === undefined || found.userId === userId) && tags.every((tag) => found.tags.includes(tag)),
    heldSlices: ({ slices, next }) => ({ slices: heldOnly(reach, slices), next }),
    async reachedMemory(id) {
      const memory = await tenant.getMemory(id);
      reach.requireReached(memory);
      return memory;
    },
    requireReached(memory) {
      if (!reach.holds(memory)) throw new EngineError('not_found', 'no memory with this id');
    },
    reachedIds: async (ids) =>
      new Set(
        // A read may be refused where many wait, and an add asks about no memory in most cases.
        ids.length === 0
          ? []
          : await tenant.listPresent(ids, { userIds: userId === undefined ? undefined : [userId], withinTags: tags }),
      ),
    async *reachedRevisions(id, page) {
      await reach.reachedMemory(id);
      yield* tags.length === 0 ? tenant.streamRevisions(id, page) : revisionsWithin(tenant, reach, { id, page });
    },
    async reachedDocument(id) {
      const document = await tenant.getDocument(id);
      if (!reach.holds(document)) throw new EngineError('not_found', 'no document with this id');
      return document;
    },
    async reachedJob(id) {
      const job = await tenant.getJob(id);
      const { memoryId, documentId } = job;
      const isOwn =
        reach.ownJobs.has(id) ||
        // A reflection reads all memories of its user, whatever their tags.
        (tags.length === 0 && job.userId === userId) ||
        (memoryId !== null && (await reach.reachedIds([memoryId])).has(memoryId)) ||
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
    ownFilter: (filter) => ({ ...filter, userIds: reach.onlyOwn(filter.userIds), withinTags: tags }),
  };
  return reach;
}

async function* heldOnly({ holds }: Reach, slices: MemorySlices['slices']): MemorySlices['slices'] {
  for await (const slice of slices) yield slice.filter(({ memory }) => holds(memory));
}

/**
 * Yields the newest revisions of a memory, back to the update that gave the memory all of `tags`; that update's
 * revision is left out. They are read from the newest on, because a revision holds only what its update replaced. After
 * each slice is read, the memory is looked for again: if it has left the bounds, the newest of them may lie outside.
 * @throws EngineError `not_found` for a memory outside the bounds
 */
async function* revisionsWithin(
  tenant: Tenant,
  { tags, reachedMemory }: Reach,
  { id, page }: { readonly id: string; readonly page: RevisionPage },
): AsyncGenerator<readonly Revision[]> {
  let { limit = Number.MAX_SAFE_INTEGER } = page;
  const { before = Number.MAX_SAFE_INTEGER } = page;
  for await (const slice of tenant.streamRevisions(id, {})) {
    await reachedMemory(id);
    const end = slice.findIndex(({ replaced }) => lacksTags(replaced['tags'], tags));
    const within = end === -1 ? slice : slice.slice(0, end);
    const shown = within.filter(({ version }) => version < before).slice(0, limit);
    limit -= shown.length;
    yield shown;
    if (end !== -1 || limit === 0) return;
  }
}

/**
 * Whether the tags that an update replaced lacked one of `tags`, so that this update gave the memory all of them.
 * @param replaced the former tags; undefined if the update did not change the tags
 */
function lacksTags(replaced: unknown, tags: readonly string[]): boolean {
  return Array.isArray(replaced) && !tags.every((tag) => replaced.includes(tag));
}

/**
 * Checks that a request of a bound caller names no other user. Without a bound user it passes.
 * @param named user that the request names; undefined and null name nobody and pass. '' counts as another user
 * @throws EngineError `forbidden`
 */
export function requireOwnUser({ userId }: Bounds, named: string | null | undefined): void {
  if (userId === undefined || named == null || named === userId) return;
  throw new EngineError('forbidden', 'this key is bound to one user, and the request names another');
}

/** Makes the error of a request that would reach beyond the bounds of a key: `forbidden`. */
export function refusal(): EngineError {
  return new EngineError('forbidden', 'this key is bound to a user or tags, and this is about more than them');
}

/** Turns one user of a filter into a list of users; undefined, which stands for all users, stays undefined. */
export const listed = (userId: string | undefined) => (userId === undefined ? undefined : [userId]);
