import { addReceipts, ERASE_SLICE } from '../commands/erase.ts';
import type { UndoneChanges, UndoneLinks } from '../commands/undo-writer.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import type { ErasedRecalls } from '../store/recalls.ts';
import type { ErasedLogItems, LogProgress } from '../store/writers-log-items.ts';
import type { ErasedStanding, ErasureFilter, ErasureReceipt, OpenErasure } from '../types.ts';
import { archiveAll } from './archive-reflections.ts';
import { createEraseParts } from './erase-parts.ts';
import type { Erasure } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';
import { eraseLogItems } from './tenant-session-logs.ts';
import { eraseStandingOf } from './tenant-standing.ts';

/**
 * Makes the method that erases all memories and documents that match a filter. Reads find what matches, and the writer
 * erases it in commits of at most `ERASE_SLICE` memories each. The method throws EngineError `invalid` for a filter
 * without a condition.
 */
export function createEraseMatching(options: TenantOptions, operations: Erasure): Tenant['deleteMemories'] {
  const { path, writer, dispatcher } = options;
  const { eraseDocuments, eraseMemories } = createEraseParts(options, operations);
  return async (filter) => {
    // Bounds alone are no filter: a key that is bound to tags would erase all that it reaches.
    if (Object.entries({ ...filter, withinTags: undefined }).every(saysNothing)) {
      throw new EngineError('invalid', 'a delete needs a filter: user_id, session_id, tags, files or written_by');
    }
    return withReceipt(options, describe(filter), (erasure) => eraseAll(filter, erasure));
  };

  async function eraseAll(filter: ErasureFilter, erasure: OpenErasure): Promise<ErasureReceipt> {
    // The first commits: what follows makes events, which are not to reach the address of a leaked key.
    const registered = await eraseStandingOfKeys(options, filter);
    const documents = await eraseDocuments(filter, erasure);
    while ((await writer.write(path, 'abandonLogs', { filter, limit: ERASE_SLICE })) === ERASE_SLICE);
    const standing = registered ?? (await eraseEvalItemsAndStanding(options, filter));
    // Items of logs that are being erased would be walked past again and again by what follows.
    let logItems = await eraseLogItems(options);
    for (let progress: LogProgress | null = null, isDone = false; !isDone;) {
      const slice: ErasedLogItems = await writer.write(path, 'eraseItemsOfWriters', { filter, progress });
      logItems += slice.items;
      ({ progress, isDone } = slice);
    }
    logItems += await eraseLogItems(options);
    // What waits to be logged was asked before the erasure.
    await options.recalls.flush(options.path);
    for (let after: number | null = 0; after !== null;) {
      const slice: ErasedRecalls = await writer.write(path, 'eraseRecalls', { filter, after });
      after = slice.next;
    }
    let receipt: ErasureReceipt = documents.receipt;
    for (let { others } = documents; ;) {
      const memories = await eraseMemories(filter, erasure);
      receipt = addReceipts(receipt, memories.receipt);
      others = [...new Set([...others, ...memories.others])];
      if (others.length === 0) break;
      await operations.waitForOthers(others);
      const rest = await eraseDocuments(filter, erasure);
      receipt = addReceipts(receipt, rest.receipt);
      others = rest.others;
    }
    // Versions that were given up belong to no erasure, as their documents stay. Their memories are erased by now, and
    // are in the receipt.
    if (filter.writtenBy !== undefined) await operations.eraseAbandoned();
    // While a user had memories, the user's name may have come into further deliveries.
    const later = registered === undefined ? await eraseEvalItemsAndStanding(options, filter) : undefined;
    if (asksForWriterAlone(filter)) {
      for (const writtenBy of filter.writtenBy ?? []) receipt = await undoWriter(options, writtenBy, receipt);
      dispatcher.dispatch(path, 'encode');
    }
    dispatcher.dispatch(path, 'link');
    return { ...receipt, ...addStanding(standing, later), logItems };
  }
}

/**
 * If a filter names only users, erases the items of evaluation sets whose queries are about these users, and the users'
 * standing queries and webhooks. A filter with any further condition leaves them.
 * @returns the numbers of erased standing queries and webhooks; undefined for a filter with another condition or none
 */
async function eraseEvalItemsAndStanding(
  options: TenantOptions,
  filter: ErasureFilter,
): Promise<ErasedStanding | undefined> {
  const { userIds } = filter;
  if (userIds === undefined || !namesOnlyUsers(filter)) return undefined;
  while (!(await options.writer.write(options.path, 'eraseEvalItems', { userIds })).isDone);
  return eraseStandingOf(options, { userIds });
}

function addStanding(first: ErasedStanding | undefined, later: ErasedStanding | undefined): ErasedStanding | undefined {
  if (first === undefined || later === undefined) return first;
  return {
    standingQueries: first.standingQueries + later.standingQueries,
    webhooks: first.webhooks + later.webhooks,
  };
}

/**
 * Erases the standing queries and webhooks that the keys of a filter stored; with users in the filter, only those of
 * these users. A filter with any further condition leaves them.
 * @returns their numbers; undefined for a filter without keys or with a further condition
 */
async function eraseStandingOfKeys(
  options: TenantOptions,
  { writtenBy, ...others }: ErasureFilter,
): Promise<ErasedStanding | undefined> {
  if (writtenBy === undefined || !namesOnlyUsers(others)) return undefined;
  return eraseStandingOf(options, { userIds: others.userIds, writtenBy });
}

/**
 * Describes a delete for its receipt: the names of its conditions, and the user and session ids that are erased with
 * it.
 */
function describe(filter: ErasureFilter) {
  const { userIds = [], sessionIds = [] } = filter;
  const by = Object.entries(filter).flatMap((field) => (saysNothing(field) ? [] : [field[0]]));
  return { kind: 'memories', by, names: [...userIds, ...sessionIds] } as const;
}

/**
 * Greatest number of memories to which one commit restores former values, since the words of each may have to be
 * indexed again.
 */
const RESTORED_AT_ONCE = 4;

/**
 * Undoes what a key did to memories that others wrote: removes its links and restores the values that it changed.
 * @returns `receipt` with the counts added
 */
async function undoWriter(options: TenantOptions, writtenBy: string, receipt: ErasureReceipt): Promise<ErasureReceipt> {
  const { path, writer } = options;
  let edges = 0;
  for (let isDone = false; !isDone;) {
    const slice: UndoneLinks = await writer.write(path, 'undoLinks', { writtenBy, limit: ERASE_SLICE });
    edges += slice.edges;
    isDone = slice.isDone;
  }
  let { restored = 0, unrestored = 0 } = receipt;
  let begun: UndoneChanges['begun'];
  let archivedTo: number | undefined;
  for (let after: number | null = 0; after !== null;) {
    const asked = { writtenBy, after, limit: RESTORED_AT_ONCE, begun, archivedTo };
    const slice: UndoneChanges = await writer.write(path, 'undoChanges', asked);
    restored += slice.restored;
    unrestored += slice.unrestored;
    if (slice.begun?.memoryNo !== begun?.memoryNo) archivedTo = undefined;
    ({ last: after, begun } = slice);
    if (slice.hasManyReflections) archivedTo = await archiveAll(options, { memoryNo: begun!.memoryNo });
  }
  while (await writer.write(path, 'settleEnds', {}));
  return { ...receipt, edges: receipt.edges + edges, restored, unrestored };
}

/** Whether a filter sets no other condition than users. A key that is bound to tags sets one more. */
function namesOnlyUsers({ userIds: _, withinTags = [], ...others }: ErasureFilter): boolean {
  return withinTags.length === 0 && Object.entries(others).every(saysNothing);
}

/** Whether a filter names writers and nothing else. Only then their links and changes are undone as well. */
function asksForWriterAlone({ writtenBy, ...others }: ErasureFilter): boolean {
  return writtenBy !== undefined && Object.entries(others).every(saysNothing);
}

/**
 * Whether a field of an erasure filter sets no condition: it is undefined, or empty tags or metadata. A delete whose
 * filter sets no condition would empty the tenant, so it must be refused.
 * @param field name and value of the field
 */
function saysNothing([name, condition]: [string, unknown]): boolean {
  if (condition === undefined) return true;
  return (name === 'tags' || name === 'metadata') && Object.keys(condition as object).length === 0;
}
