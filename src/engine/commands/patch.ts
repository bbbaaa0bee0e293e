import { EngineError } from '../errors.ts';
import { joinMarks } from '../privacy/screen-memory.ts';
import type { Store } from '../store/open-store.ts';
import { setSalience } from '../store/dynamics.ts';
import { deleteConcludedRelations, deleteWaypoint, listSuperseded } from '../store/edges.ts';
import { eraseEntities } from '../store/entities.ts';
import { readMemoryRows, toMemory, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import { keptHash } from '../store/duplicates.ts';
import { setItemTtl } from '../store/items.ts';
import { listReflectionsOn } from '../store/reflections.ts';
import { replaceMemory } from '../store/revisions.ts';
import { inContextOf, placeOf } from '../store/session-context.ts';
import { ensureWriter } from '../store/writers.ts';
import { storedExpiry } from '../store/stored-expiry.ts';
import { reindexText } from '../store/word-index/memory-text.ts';
import { reindexFollowers } from '../store/word-index/waiting-contexts.ts';
import { parseStored } from '../store/stored-json.ts';
import { contentHash } from '../text/content-hash.ts';
import { isMadeOf, replaceText } from '../text/json-value-text.ts';
import {
  MAX_METADATA_BYTES,
  MAX_VALUE_BYTES,
  type Json,
  type Memory,
  type MemoryPatch,
  type MemoryStatus,
  type PatchOptions,
  type Metadata,
  type SensitiveKind,
} from '../types.ts';
import { archiveReflections, archiveReflectionsOn, type ManyReflections } from './archive-reflections.ts';
import { dissolveGatheredOf } from './consolidations.ts';
import { eraseVectors } from './erase.ts';
import { enqueueStep } from './enqueue-step.ts';
import { type Quota, refuseOverQuota } from './quota.ts';
import { endSuperseded } from './settle-ends.ts';
import { startOf } from './settle-status.ts';
import { getBoundMemory } from './within-bounds.ts';
import type { WriteContext } from './write-context.ts';

/** Result of a patch. */
export interface Patched {
  /** The memory as it is now. */
  readonly memory: Memory;
  /** Whether superseded memories wait for new ends of their validity, since the start of this one has changed. */
  readonly endsWait: boolean;
}

/**
 * Changes the fields of a memory that a patch names (metadata is merged with the stored one), keeps the replaced values
 * as a revision, and raises the version. If the text changes, vectors and entities are erased at once, the memory is
 * encoded and linked again, and afterwards memories whose waypoint (automatic link) leads to it are linked again. If
 * the value of an item contains the whole text as a string, that string changes too. Memories that were concluded from
 * its old text are archived, and consolidations made from it are erased if their text or who may read them could be
 * affected. A patch that changes nothing writes nothing.
 * @param options.marked the kinds that the privacy policy has put into `sensitive` of the patch's metadata. They are
 *   added to those that are stored there; all are left as they are stored if the merged metadata would exceed 16 KiB
 *   with them, but not without them
 * @param options.archivedTo as for `archiveReflectionsOn`
 * @returns undefined if only a part of the necessary changes was written, because one commit would be too large: the
 *   caller patches again, after a result of `many reflections` once it has archived them
 * @throws EngineError `not_found`; `conflict` for another version than `ifVersion`, for a status that links determine,
 *   for fields that a chunk has from its document, for a text that is composed of several strings of an item's value,
 *   and as `changeMemory`; `invalid` if patch and stored fields do not fit together; `storage_full` over the quota
 */
export function patchMemory(
  context: WriteContext,
  {
    id,
    patch,
    marked = [],
    ifVersion,
    withinTags,
    quota = null,
    archivedTo,
  }: PatchOptions & {
    readonly id: string;
    readonly patch: MemoryPatch;
    readonly marked?: readonly SensitiveKind[] | undefined;
    readonly quota?: Quota | null;
    readonly archivedTo?: number | undefined;
  },
): Patched | ManyReflections | undefined {
  const { store, now } = context;
  const before = getBoundMemory(context, id, withinTags);
  if (ifVersion !== undefined && ifVersion !== before.version) {
    throw new EngineError('conflict', `the memory is at version ${before.version}, not ${ifVersion}: read it again`);
  }
  const changed = changedColumns(before, marked.length > 0 ? withMarks(before, patch, marked) : patch);
  const columns = before.value === null ? changed : { ...changed, ...changedValue(before, before.value, changed) };
  const newStatus = patch.status !== undefined && patch.status !== before.status ? patch.status : undefined;
  if (Object.keys(columns).length === 0 && newStatus === undefined)
    return { memory: toMemory(before, now), endsWait: false };
  if (newStatus !== undefined && before.status !== 'active' && before.status !== 'archived') {
    throw new EngineError('conflict', `a ${before.status} memory cannot become ${newStatus}`);
  }

  refuseBadPatch({ ...before, ...columns });
  if (before.generation_no !== null) refuseChangeOfDocument(columns);
  // What is replaced is kept. A change of the status alone keeps no text.
  if (Object.keys(columns).length > 0) refuseOverQuota(context, quota, 0);

  const prepared = prepareChange(context, before, columns, archivedTo);
  if (prepared !== 'done') return prepared === 'begun' ? undefined : prepared;
  const endsWait = changeMemory(context, before, { columns, status: newStatus, isPrepared: true });
  return { memory: toMemory(readMemoryRows(store, [before.memoryNo])[0] as MemoryRow, now), endsWait };
}

/**
 * Greatest number of concluded links (automatic `contradicts` and `supports`) of a memory that one call of
 * `prepareChange` removes; each takes some 10 µs.
 */
const MAX_CONCLUDED_LINKS = 1_000;

/**
 * Does the part of a change of a memory that may be too much for one commit, for which all writes of all tenants wait,
 * as far as one commit should: erases the consolidations made from the memory, and if its text changes, removes links
 * that were concluded from the text and archives reflections drawn from it. Call it before `changeMemory`, inside a
 * write transaction.
 * @param archivedTo as for `archiveReflectionsOn`
 * @returns `done` if `changeMemory` may follow in this transaction; otherwise the caller commits and calls again, after
 *   a result of `many reflections` once it has archived them
 * @throws EngineError `conflict` as `changeMemory`, with nothing changed
 */
export function prepareChange(
  context: WriteContext,
  before: MemoryRow,
  columns: MemoryColumns,
  archivedTo: number | undefined,
): ReturnType<typeof archiveReflectionsOn> {
  const { memoryNo } = before;
  refuseTooManyEnds(context.store, before, columns);
  if (isGathered(columns) && !dissolveGatheredOf(context, [memoryNo])) return 'begun';
  if (!changesMeaning(columns)) return 'done';
  if (deleteConcludedRelations(context.store, memoryNo, MAX_CONCLUDED_LINKS) === MAX_CONCLUDED_LINKS) return 'begun';
  return archiveReflectionsOn(context, memoryNo, archivedTo);
}

/**
 * Writes changed columns of a memory, and everything that follows from them; writes nothing if nothing changes. Call it
 * inside a write transaction. If the start of validity changes, some of the memories that it supersedes may wait for
 * their new ends: `settleEnds` ends them in later commits.
 * @param before the memory as it is stored now
 * @param columns only the columns whose value changes
 * @param status the new status; undefined to keep it
 * @param isPrepared whether `prepareChange` has returned `done` for these columns in this transaction. Otherwise its
 *   work is done here, however much it is
 * @returns whether superseded memories wait for their new ends since the start changed
 * @throws EngineError `conflict` if the start of validity changes and the memory supersedes more than 200 others
 */
export function changeMemory(
  context: WriteContext,
  before: MemoryRow,
  {
    columns,
    status,
    isPrepared = false,
  }: { readonly columns: MemoryColumns; readonly status: MemoryStatus | undefined; readonly isPrepared?: boolean },
): boolean {
  const { store, now } = context;
  refuseTooManyEnds(store, before, columns);
  replaceMemory(store, before, { columns, status, writerNo: ensureWriter(store, context.writtenBy), now });
  if (columns.expires_at !== undefined) setItemTtl(store, before.memoryNo, null);
  const isMoved = startOf({ ...before, ...columns }) !== startOf(before);
  const endsWait = isMoved && endSuperseded(context, before.memoryNo);
  if (typeof columns.importance === 'number') setSalience(store, before.memoryNo, columns.importance, now);
  rewriteWords(context, before, columns);
  if (isGathered(columns)) while (!dissolveGatheredOf(context, [before.memoryNo]));
  const meaningChanged = changesMeaning(columns);
  if (meaningChanged) {
    eraseVectors(context, [before.memoryNo]);
    deleteWaypoint(store, before.memoryNo);
    deleteConcludedRelations(store, before.memoryNo);
    if (!isPrepared) {
      const memoryNos = listReflectionsOn(store, [before.memoryNo]);
      while (!archiveReflections(context, { memoryNos }));
    }
  }
  const namesChanged = meaningChanged || columns.entities !== undefined;
  const forcedSector = columns.metadata !== undefined && sectorOf(columns.metadata) !== sectorOf(before.metadata);
  if (namesChanged) eraseEntities(store, [before.memoryNo]);
  if (namesChanged || forcedSector) enqueueStep(context, before.memoryNo, 'encode');
  return endsWait;
}

/**
 * Greatest number of memories that a memory may supersede if the start of its validity is to change. The end of
 * validity of each of them moves with it, and gets a revision.
 */
const MAX_ENDED = 200;

/**
 * Whether a change moves the start of a memory that supersedes more than 200 others. Their ends of validity would move
 * with it, which is too much work for one small change.
 */
export function endsTooMany(store: Store, before: MemoryRow, columns: MemoryColumns): boolean {
  if (startOf({ ...before, ...columns }) === startOf(before)) return false;
  return listSuperseded(store, before.memoryNo, { limit: MAX_ENDED + 1 }).length > MAX_ENDED;
}

function refuseTooManyEnds(store: Store, before: MemoryRow, columns: MemoryColumns): void {
  if (!endsTooMany(store, before, columns)) return;
  throw new EngineError(
    'conflict',
    `the start of a memory that supersedes over ${MAX_ENDED} others cannot change, as all of them would end anew`,
  );
}

/**
 * Columns that decide whether a memory may become a source of a consolidation, what the consolidation says, and who may
 * read it. When one of them changes, the consolidations made from the memory are erased.
 */
const GATHERED_COLUMNS: ReadonlySet<string> = new Set([
  'content',
  'title',
  'tags',
  'metadata',
  'event_time',
  'valid_from',
  'valid_to',
  'expires_at',
]);

const isGathered = (columns: MemoryColumns) => Object.keys(columns).some((name) => GATHERED_COLUMNS.has(name));

/** Whether a change needs new vectors: title and content are embedded together. */
const changesMeaning = ({ content, title }: MemoryColumns) => content !== undefined || title !== undefined;

/**
 * Returns the changed column `value` of an item whose text changes. A string of the value that equals the whole old
 * text is replaced by the new one. If the text does not come from the value, or does not change, the value stays: the
 * result is empty.
 * @throws EngineError `conflict` for a text that is composed of several strings of the value; `invalid` for a value
 *   that would be too large
 */
function changedValue(before: MemoryRow, valueBefore: string, { content }: MemoryColumns): MemoryColumns {
  if (typeof content !== 'string' || before.content === '') return {};
  const value = parseStored(valueBefore) as Json;
  const replaced = replaceText(value, { old: before.content, by: content });
  if (replaced === undefined) {
    if (!isMadeOf(before.content, value)) return {};
    throw new EngineError(
      'conflict',
      'content: this text is made of the value of an item; put the item again under its key, with its new value',
    );
  }
  const changed = JSON.stringify(replaced);
  const bytes = Buffer.byteLength(changed);
  if (bytes <= MAX_VALUE_BYTES) return { value: changed };
  throw new EngineError('invalid', `content: the item's value would be ${bytes} bytes, at most ${MAX_VALUE_BYTES}`);
}

/**
 * Refuses to change the fields that a chunk has from its document: text, title and expiry.
 * @throws EngineError `conflict`
 */
function refuseChangeOfDocument(columns: MemoryColumns): void {
  const fixed = (['content', 'title', 'expires_at'] as const).find((name) => columns[name] !== undefined);
  if (fixed === undefined) return;
  throw new EngineError(
    'conflict',
    `${fixed}: this memory is a part of a document; hand the document in again to change it`,
  );
}

/**
 * Refuses fields that are wrong only together with stored ones: metadata over 16 KiB after the merge, or an end of
 * validity that is not after its begin.
 * @throws EngineError `invalid`
 */
function refuseBadPatch({
  metadata,
  valid_from,
  valid_to,
}: Pick<MemoryRow, 'metadata' | 'valid_from' | 'valid_to'>): void {
  const bytes = Buffer.byteLength(metadata);
  if (bytes > MAX_METADATA_BYTES) {
    throw new EngineError(
      'invalid',
      `metadata: would be ${bytes} bytes after the merge, at most ${MAX_METADATA_BYTES}`,
    );
  }
  if (valid_from !== null && valid_to !== null && valid_from >= valid_to) {
    throw new EngineError('invalid', `valid_to: must be later than valid_from, which is ${valid_from}`);
  }
}

/**
 * Returns the columns whose value differs from the stored one. If the text changes, a stated gist and stated entities
 * of the old text are removed, unless the patch states new ones.
 */
function changedColumns(before: MemoryRow, patch: MemoryPatch): MemoryColumns {
  const given: Record<string, unknown> = {
    content: patch.content,
    title: patch.title,
    gist: patch.gist ?? (patch.content === undefined ? undefined : ''),
    entities: json(patch.entities ?? (patch.content === undefined ? undefined : [])),
    type: patch.type,
    tags: json(patch.tags),
    files: json(patch.files),
    metadata: patch.metadata && JSON.stringify(mergeMetadata(JSON.parse(before.metadata) as Metadata, patch.metadata)),
    event_time: patch.eventTime,
    valid_from: patch.validFrom,
    valid_to: patch.validTo,
    expires_at: storedExpiry(patch.expiresAt),
    importance: patch.importance,
    confidence: patch.confidence,
  };
  const changed = Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value !== undefined && value !== before[name as keyof MemoryRow]),
  );
  if (changed.content === undefined && patch.content !== undefined) {
    // The text is the same, so what was stated about it still holds.
    if (patch.gist === undefined) delete changed.gist;
    if (patch.entities === undefined) delete changed.entities;
  }
  if (changed.content !== undefined) changed.content_hash = keptHash(contentHash(changed.content as string));
  if (changed.event_time !== undefined) changed.event_time_given = 1;
  return changed;
}

/**
 * Returns a patch whose metadata names in `sensitive` the marked kinds and those that are named there already, since
 * fields that the patch leaves alone may hold them. It does not have the key if the metadata of the memory would only
 * exceed 16 KiB because of it: a change must not be refused for what its caller did not send.
 */
function withMarks(before: MemoryRow, patch: MemoryPatch, marked: readonly SensitiveKind[]): MemoryPatch {
  const stored = JSON.parse(before.metadata) as Metadata;
  const { sensitive: earlier } = stored;
  const metadata = Object.fromEntries(Object.entries(patch.metadata ?? {}).filter(([key]) => key !== 'sensitive'));
  const withKinds = { ...metadata, sensitive: joinMarks(earlier, marked) };
  const bytesWith = (added: Metadata) => Buffer.byteLength(JSON.stringify(mergeMetadata(stored, added)));
  const isTooMuch = bytesWith(withKinds) > MAX_METADATA_BYTES && bytesWith(metadata) <= MAX_METADATA_BYTES;
  return { ...patch, metadata: isTooMuch ? metadata : withKinds };
}

function json(value: unknown): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}

/**
 * Merges metadata one level deep: a key is replaced with everything below it, and null removes it. `__proto__` is a key
 * like any other.
 */
function mergeMetadata(before: Metadata, patch: Metadata): Metadata {
  const merged = new Map<string, Json>(Object.entries(before));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, value);
  }
  return Object.fromEntries(merged);
}

/**
 * Rewrites a memory's words, and those of the memories that have it in their context, at its old time and at its new
 * one. What is too much text for one commit waits (`reindexFollowers`).
 */
function rewriteWords({ store }: WriteContext, before: MemoryRow, columns: MemoryColumns): void {
  const wordsChanged = ['content', 'title', 'gist', 'entities', 'tags', 'files'].some((name) => name in columns);
  const placeChanged = columns.event_time !== undefined;
  if (!wordsChanged && !placeChanged) return;
  reindexText(store, [before.memoryNo]);
  const place = placeOf(before);
  const atOld = columns.content !== undefined || placeChanged ? inContextOf(store, place) : [];
  const atNew = placeChanged ? inContextOf(store, { ...place, eventTime: columns.event_time }) : [];
  reindexFollowers(
    store,
    [...atOld, ...atNew].filter((memoryNo) => memoryNo !== before.memoryNo),
  );
}

function sectorOf(metadata: string): unknown {
  return (JSON.parse(metadata) as { sector?: unknown }).sector;
}
