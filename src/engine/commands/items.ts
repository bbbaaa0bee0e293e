import { EngineError, noItem } from '../errors.ts';
import { hasTags } from '../store/bounds.ts';
import { keptHash } from '../store/duplicates.ts';
import { findItemNo, putItemName, renewItems as renew, setItemExpiry, setItemTtl } from '../store/items.ts';
import {
  ensureUser,
  findMemoryNos,
  readMemoryRows,
  toMemory,
  type MemoryColumns,
  type MemoryRow,
} from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { storedExpiry } from '../store/stored-expiry.ts';
import { contentHash } from '../text/content-hash.ts';
import type { ExpectedItem, ItemDeleteOptions, ItemPlace, NewItem, NewMemory, PutOptions, PutReply } from '../types.ts';
import type { ManyReflections } from './archive-reflections.ts';
import { refuseOverBacklog, requireTags, storeMemory } from './accept.ts';
import { EMPTY_RECEIPT, type ErasedSlice, eraseInSlices } from './erase.ts';
import { changeMemory, type Patched, prepareChange } from './patch.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import { refuseRestating, restate } from './relate.ts';
import type { WriteContext } from './write-context.ts';
import { findUserNo } from '../store/users.ts';

/**
 * An item (memory with a name in a namespace) that has a text: the one that the caller gave, or one that was derived
 * from the item's value.
 */
export type ReadyItem = NewItem & { readonly content: string };

/** Result of one write of a delete of an item. */
export interface ErasedItem extends ErasedSlice {
  /** `id` of the memory, by which the next write goes on: another memory may have the name of the item by then. */
  readonly id: string;
}

/** Expiry (Unix ms) of an item whose delete has begun. It has passed even if the clock is set back meanwhile. */
const BEGUN = 1;

/** Result of a put, and whether superseded memories wait for new ends, as in `Patched`. */
type PutDone = PutReply & Pick<Patched, 'endsWait'>;

/**
 * Stores an item (memory with a name), or replaces the whole item with this name and keeps the replaced one as a
 * revision. An event time that is not given stays. An item that was archived, superseded or contradicted becomes active
 * again, and the links that made it superseded or contradicted are removed. An item that has expired is erased and
 * stored anew. A put that changes nothing writes nothing.
 * @param archivedTo as for `archiveReflectionsOn`
 * @returns undefined if only a part of the necessary changes was written, because one commit would be too large: the
 *   caller puts the item again, after a result of `many reflections` once it has archived them
 * @throws EngineError `conflict` if the item is not the expected one (`ExpectedItem`), if it lacks a tag of
 *   `withinTags`, and as `restate` and `changeMemory`; `unavailable` and `storage_full` as an add
 */
export function putItem(
  context: WriteContext,
  {
    item,
    options,
    quota = null,
    archivedTo,
  }: {
    readonly item: ReadyItem;
    readonly options: PutOptions;
    readonly quota?: Quota | null;
    readonly archivedTo?: number | undefined;
  },
): PutDone | ManyReflections | undefined {
  const { store, now } = context;
  const { withinTags = [] } = options;
  let before = findItemRow(store, item);
  if (before !== undefined && isExpired(before, now)) {
    if (!eraseInSlices(context, [before.memoryNo]).isDone) return undefined;
    before = undefined;
  }
  const version = before?.version ?? 0;
  if (before !== undefined) requireTags(JSON.parse(before.tags) as string[], withinTags);
  requireExpected(before, options);
  if (before === undefined)
    return { memory: storeItem(context, item, quota), created: true, changed: true, endsWait: false };

  // All refusals come before the first commit of what is prepared.
  refuseRestating(context, before.memoryNo);
  const wanted = changedColumns(before, item);
  if (Object.keys(wanted).length > 0) refuseOverQuota(context, quota, 0);
  // Before the item gets another version, which a repeated put would not expect.
  const prepared = prepareChange(context, before, wanted, archivedTo);
  if (prepared !== 'done') return prepared === 'begun' ? undefined : prepared;
  if (before.status === 'superseded' || before.status === 'contradicted') {
    if (!restate(context, before.memoryNo)) return undefined;
    before = readRow(store, before.memoryNo);
  }
  const columns = changedColumns(before, item);
  if (Object.keys(columns).length > 0) refuseOverQuota(context, quota, 0);
  const status = before.status === 'archived' ? 'active' : undefined;
  const endsWait = changeMemory(context, before, { columns, status, isPrepared: true });
  putItemName(store, before.memoryNo, nameOf(before.user_no, item));
  setItemTtl(store, before.memoryNo, item.ttlMs ?? null);
  const memory = toMemory(readRow(store, before.memoryNo), now);
  return { memory, created: false, changed: memory.version !== version, endsWait };
}

/**
 * Erases an item, or, if too many rows depend on it for one commit, only some of those rows (`isDone` is false). Then
 * the item also expires, so that nothing changes it before the next call: a put stores another item under its name.
 * @param begun `id` of the memory, from the result of an earlier call for this delete that has erased a part. The
 *   conditions held then and are not checked again. If a put or the upkeep has erased the rest, nothing is left to do
 * @throws EngineError `not_found`, also for an item that lacks a tag of `withinTags`; `conflict` if the item is not
 *   the expected one (`ExpectedItem`)
 */
export function deleteItem(
  context: WriteContext,
  {
    place,
    options,
    begun,
  }: { readonly place: ItemPlace; readonly options: ItemDeleteOptions; readonly begun?: string | undefined },
): ErasedItem {
  if (begun !== undefined) return eraseRest(context, begun);
  const { store } = context;
  const { withinTags = [] } = options;
  const row = findItemRow(store, place);
  const tags = row === undefined ? [] : (JSON.parse(row.tags) as string[]);
  if (row === undefined || !hasTags(tags, withinTags)) throw noItem();
  requireExpected(row, options);
  const slice = eraseInSlices(context, [row.memoryNo]);
  if (slice.isDone) return { ...slice, id: row.id };
  setItemExpiry(store, row.memoryNo, BEGUN);
  // A put, or the upkeep, may erase the rest of it.
  context.erasing?.memory(row);
  return { ...slice, id: row.id };
}

function eraseRest(context: WriteContext, id: string): ErasedItem {
  const { store } = context;
  const memoryNo = findMemoryNos(store, [id]).get(id);
  if (memoryNo === undefined) return { receipt: EMPTY_RECEIPT, isDone: true, id };
  // The feed is to tell that it was deleted, not that it has expired.
  return { ...eraseInSlices(context, [memoryNo], () => setItemExpiry(store, memoryNo, null)), id };
}

/**
 * Sets the expiry of items with a lifetime to their whole lifetime from now. An item stays unchanged if it has no
 * lifetime or has expired, or if its expiry would move by less than 1 % of the lifetime.
 */
export function renewItems(
  { store, now }: WriteContext,
  { memoryNos }: { readonly memoryNos: readonly number[] },
): void {
  renew(store, memoryNos, now);
}

/** Finds the row of an item by its name, even if it has expired; undefined if there is none. */
export function findItemRow(store: Store, place: ItemPlace): MemoryRow | undefined {
  const userNo = findUserNo(store, place.userId);
  const memoryNo = userNo === undefined ? undefined : findItemNo(store, nameOf(userNo, place));
  return memoryNo === undefined ? undefined : readRow(store, memoryNo);
}

const isExpired = ({ expires_at: expiresAt }: MemoryRow, now: number) => expiresAt !== null && expiresAt <= now;

const nameOf = (userNo: number, { namespace, key }: ItemPlace) => ({ userNo, namespace, key });

function readRow(store: Store, memoryNo: number): MemoryRow {
  return readMemoryRows(store, [memoryNo])[0] as MemoryRow;
}

/** Throws EngineError `conflict` if a caller expects another item than there is. */
function requireExpected(row: MemoryRow | undefined, { ifVersion, ifId }: ExpectedItem): void {
  const version = row?.version ?? 0;
  if (ifVersion !== undefined && ifVersion !== version)
    throw new EngineError(
      'conflict',
      version === 0 ? 'there is no item with this key' : `the item is at version ${version}, not ${ifVersion}`,
    );
  if (row !== undefined && ifId !== undefined && ifId !== row.id)
    throw new EngineError('conflict', 'the item was erased and stored anew: read it again');
}

function storeItem(context: WriteContext, item: ReadyItem, quota: Quota | null) {
  refuseOverBacklog(context, 1);
  refuseOverQuota(context, quota, 1);
  const { store } = context;
  const { key, namespace, value, ttlMs = null, ...fields } = item;
  const memory: NewMemory = { ...fields, sessionId: '', externalId: namespace === '' ? key : null };
  const userNo = ensureUser(store, item.userId);
  const hash = contentHash(item.content);
  const stored = storeMemory(context, { memory, userNo, hash, bulk: false, value: jsonOf(value) });
  putItemName(store, stored.memoryNo, nameOf(userNo, item));
  setItemTtl(store, stored.memoryNo, ttlMs);
  return toMemory(readRow(store, stored.memoryNo), context.now);
}

/** Returns the columns that a put changes. The event time is among them only if the put states another one. */
function changedColumns(before: MemoryRow, item: ReadyItem): MemoryColumns {
  const given: Record<string, unknown> = {
    content: item.content,
    title: item.title,
    gist: item.gist,
    entities: JSON.stringify(item.entities ?? []),
    type: item.type,
    tags: JSON.stringify(item.tags),
    files: JSON.stringify(item.files),
    metadata: JSON.stringify(item.metadata),
    value: jsonOf(item.value),
    event_time: item.eventTime ?? before.event_time,
    valid_from: item.validFrom,
    valid_to: item.validTo,
    expires_at: storedExpiry(item.expiresAt),
    importance: item.importance,
    confidence: item.confidence,
  };
  const changed = Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value !== before[name as keyof MemoryRow]),
  );
  if (changed['content'] !== undefined) changed['content_hash'] = keptHash(contentHash(item.content));
  if (changed['event_time'] !== undefined) changed['event_time_given'] = 1;
  return changed;
}

function jsonOf(value: NewItem['value']): string | null {
  return value === null ? null : JSON.stringify(value);
}
