import { decayLambdaOf, initialSalience, RECALL_SALIENCE_BOOST, sectorsFromBits } from '../dynamics.ts';
import { assert, EngineError, type ErrorCode, isEngineError } from '../errors.ts';
import { prefetchFirstForAccept, prefetchForAccept } from '../store/prefetch.ts';
import { insertDynamics, reinforceMemory } from '../store/dynamics.ts';
import { hasManyTrips } from '../store/foresight.ts';
import { findStoredReply, putStoredReply, MAX_REPLY_MEMORIES } from '../store/idempotency.ts';
import { countWaiting } from '../store/job-views.ts';
import { releaseItemName } from '../store/items.ts';
import { insertJob } from '../store/jobs.ts';
import { ensureUser, insertMemory, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import { findByExternalId, findDuplicate, type NamedTwin, type Twin } from '../store/duplicates.ts';
import type { Store } from '../store/open-store.ts';
import { replaceMemory } from '../store/revisions.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { contextAndFollowers, contextAndFollowersAmong, latestOf } from '../store/session-context.ts';
import { ensureWriter } from '../store/writers.ts';
import { insertText, MAX_INDEXED_BYTES } from '../store/word-index/memory-text.ts';
import { reindexFollowers } from '../store/word-index/waiting-contexts.ts';
import { contentHash } from '../text/content-hash.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import type {
  AddOptions,
  AddOutcome,
  AddReply,
  BoundOptions,
  NewMemory,
  RejectedItem,
  ScreenReport,
} from '../types.ts';
import { isDivisible } from './divisible-adds.ts';
import { encodeReceipt } from './write-receipt.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import { enqueueReindex, MOVED_BYTES, type ReindexQueue, walkedBytes } from './reindex-queue.ts';
import { deriveFrom, getReplaced, getSources, refuseSecondSuccessor, takePlace } from './relate.ts';
import { settlingBytes } from './settle-status.ts';
import type { WriteContext } from './write-context.ts';

/**
 * An item of an add request after its screening for secrets and personal data. `screened` is absent if the privacy
 * policy is off.
 */
export type ScreenedItem = RejectedItem | (NewMemory & { readonly screened?: ScreenReport });

/** Input of `addMemories`: the screened items of an add request, its options, and the tenant's quota. */
export interface AddInput {
  readonly items: readonly ScreenedItem[];
  readonly options: AddOptions;
  readonly quota?: Quota | null;
}

/**
 * Stores the items of an add request, in the writer's transaction. The row of a memory, its words and its ledger job
 * are written together, so that whatever is answered 2xx is stored, found by its words, and owed to the workers. An
 * exact duplicate writes no memory, unless the item has `onDuplicate: 'keep'`; it reinforces the stored memory, and
 * makes it active again if it was archived. An item that is refused with a code of `REJECTING`, as one whose
 * `external_id` belongs to another text, is rejected alone; with `allOrNothing` its error rejects all items. Once
 * memories of 4 MB were superseded, no further item is taken: if other writes may not take the rest (`isDivisible`),
 * each of the rest gets a `conflict`. If they may, none is taken either once the items make as much work for the word
 * index as one commit should index (`MAX_INDEXED_BYTES`), with the memories that follow them in their sessions and
 * walks along chains, or in PostgreSQL took 150 round trips. Of those that follow, some may wait for their words to be
 * written anew.
 * @param asked items, options and quota; with an Idempotency-Key at most `MAX_REPLY_MEMORIES` items
 * @returns outcomes in the order of `items`, and `taken`, the number of items that were taken, if that is not all; then
 *   items that other writes may take have no outcomes, as each stored reply would repeat them. An Idempotency-Key that
 *   the writer has used gets its stored reply, even if its memories have changed since
 * @throws EngineError for all items: `unavailable` over `OM_MAX_BACKLOG`; what `refuseOverQuota` and `findStoredReply`
 *   throw; with `allOrNothing` the error of the first item that was refused
 */
export function addMemories(context: WriteContext, { items, options, quota = null }: AddInput): AddReply {
  const { store, writtenBy } = context;
  const claim = options.idempotency && { ...options.idempotency, writtenBy };
  const stored = claim && findStoredReply(store, claim, items.length);
  if (stored) return stored;
  assert(claim === undefined || items.length <= MAX_REPLY_MEMORIES, 'a reply that is kept is a short one');
  const adding = items.filter((item) => !isRejected(item)).length;
  refuseOverBacklog(context, adding);
  refuseOverQuota(context, quota, adding);

  const accepted: Accepted[] = [];
  const outcomes: AddOutcome[] = [];
  const toReindex: ReindexQueue = { memoryNos: new Set(), bytes: 0, settled: 0 };
  let taken = 0;
  let indexed = 0;
  for (const item of items) {
    const isLong = isDivisible(options) && taken > 0 && hasManyTrips(store);
    const walked = taken > 0 ? walkedBytes(store) : 0;
    const words = isDivisible(options) ? indexed + toReindex.bytes + walked : 0;
    const isTaken = words + toReindex.settled < MAX_INDEXED_BYTES && !isLong;
    if (!isTaken && isDivisible(options)) break;
    const acceptedBefore = accepted.length;
    const outcome = isTaken ? acceptItem(context, { item, options, before: outcomes, accepted, toReindex }) : NOT_TAKEN;
    if (isTaken) taken += 1;
    if (accepted.length > acceptedBefore) indexed += accepted.at(-1)!.indexedBytes;
    if (options.allOrNothing === true && isRejected(outcome)) throw refusalOf(outcome);
    outcomes.push(outcome);
  }
  reindexFollowers(store, toReindex.memoryNos);
  const [first, last] = [accepted[0], accepted.at(-1)];
  const reply: AddReply = {
    outcomes,
    token:
      first && last ? encodeReceipt({ storeId: ensureStoreId(store), first: first.jobNo, last: last.jobNo }) : null,
    replayed: false,
    ...(taken === items.length ? {} : { taken }),
  };
  if (claim) {
    const memories = first && last ? { first: first.memoryNo, last: last.memoryNo } : null;
    putStoredReply(store, claim, { reply, memories, now: context.now });
  }
  return reply;
}

/** An add request, and the public id of the key in whose name it is made. */
export interface AddRequest {
  readonly input: AddInput;
  readonly writtenBy: string | null;
}

/**
 * Makes what reads ahead what a group of add requests will need for their items, if the store can do so (PostgreSQL):
 * `first` in the first round trip of their write, and `then`, to be called at the beginning of the write, in the next
 * one. For a file both do nothing.
 */
export function prefetchOfAdds(
  { store, config, now }: Pick<WriteContext, 'store' | 'config' | 'now'>,
  requests: readonly AddRequest[],
): { readonly first: () => void; readonly then: () => void } {
  if (store.ahead === null || requests.length === 0) return { first() {}, then() {} };
  const memories = requests.flatMap(({ input }) => input.items.filter((item): item is NewMemory => !isRejected(item)));
  const writers = requests.flatMap(({ writtenBy }) => writtenBy ?? []);
  const isAudited = config.OM_AUDIT !== 'off';
  return {
    first: () => prefetchFirstForAccept(store, { memories, writers, isAudited, now }),
    then: () => prefetchForAccept(store, memories, now),
  };
}

/** The outcome of an item that an add did not take. */
const NOT_TAKEN = rejected(
  new EngineError('conflict', 'these memories supersede over 4 MB of others: add fewer at once'),
);

/** Error codes that reject only one item of an add. They are thrown before the item's memory is written. */
const REJECTING: ReadonlySet<ErrorCode> = new Set(['conflict', 'invalid', 'not_found']);

interface Accepted {
  readonly memoryNo: number;
  readonly id: string;
  readonly jobId: string;
  readonly jobNo: number;
  /** Work that the memory makes for the word index, in the unit of `insertText`. */
  readonly indexedBytes: number;
}

/**
 * Stores one item of an add request. An error that rejects only this item becomes its outcome; other errors are thrown.
 * @param asked.before outcomes of the items before it
 * @param asked.accepted memories that this add stored; a new one is appended
 * @param asked.toReindex memories that the caller indexes anew; those that follow the new one are added
 */
function acceptItem(
  context: WriteContext,
  asked: {
    readonly item: ScreenedItem;
    readonly options: AddOptions;
    readonly before: readonly AddOutcome[];
    readonly accepted: Accepted[];
    readonly toReindex: ReindexQueue;
  },
): AddOutcome {
  const { item, options, before, accepted, toReindex } = asked;
  if (isRejected(item)) return item;
  const report = item.screened === undefined ? {} : { screened: item.screened };
  try {
    const sources = getSources(context, sourcesOf(options, before), options);
    const result = acceptMemory(context, item, { ...options, toReindex });
    if (!('memoryNo' in result)) return { ...result, ...report };
    deriveFrom(context, result.memoryNo, sources);
    accepted.push(result);
    return { kind: 'accepted', id: result.id, jobId: result.jobId, jobNo: result.jobNo, ...report };
  } catch (error) {
    if (!isEngineError(error) || !REJECTING.has(error.code)) throw error;
    return rejected(error);
  }
}

/**
 * Lists the ids of the memories from which the next item of an add request is derived, by `AddOptions.derived`. There a
 * source is named by its id or by its index among the items before.
 * @param before outcomes of the items before it; their number is the index of the next item
 * @throws EngineError with the code and message of the source's error, if a source is an item that was rejected
 */
function sourcesOf({ derived = [] }: AddOptions, before: readonly AddOutcome[]): string[] {
  if (derived.length === 0) return [];
  const sources = derived.filter(({ item }) => item === before.length).flatMap(({ from }) => from);
  return sources.map((source) => {
    if (typeof source === 'string') return source;
    const outcome = before[source];
    assert(outcome !== undefined, 'an item of an add rests on items before it');
    if (isRejected(outcome)) throw refusalOf(outcome);
    return outcome.id;
  });
}

const refusalOf = ({ error }: RejectedItem) => new EngineError(error.code as ErrorCode, error.message);

type Duplicate = Extract<AddOutcome, { kind: 'duplicate' }>;

function acceptMemory(
  context: WriteContext,
  memory: NewMemory,
  options: AddOptions & { readonly toReindex: ReindexQueue },
): Accepted | Duplicate {
  const { store, now } = context;
  const { bulk = false, withinTags = [], matchesDerived = false, toReindex } = options;
  const bounds = { userId: memory.userId, withinTags };
  const older = memory.supersedes === undefined ? undefined : getReplaced(context, memory.supersedes, bounds);
  const userNo = ensureUser(store, memory.userId);
  const hash = contentHash(memory.content);
  const found = findTwin(store, { memory, userNo, hash, matchesDerived, now, withinTags });
  const isNameLeft = found?.isExpired === 1;
  const twin = isNameLeft ? undefined : found;
  if (twin !== undefined) {
    requireTags(JSON.parse(twin.tags) as string[], withinTags);
    requireSameText(twin, memory, hash);
    if (older !== undefined) supersede(context, older, twin.memoryNo, { toReindex, withinTags });
    return recogniseDuplicate(context, twin);
  }

  if (older !== undefined) refuseSecondSuccessor(context, older, { field: 'supersedes', withinTags });
  if (isNameLeft) releaseItemName(store, { userNo, namespace: '', key: memory.externalId! }, now);
  const stored = storeMemory(context, { memory, userNo, hash, bulk, toReindex });
  if (older !== undefined) supersede(context, older, stored.memoryNo, { toReindex, withinTags });
  return stored;
}

function supersede(
  context: WriteContext,
  older: MemoryRow,
  newerNo: number,
  { toReindex, withinTags }: BoundOptions & { readonly toReindex: ReindexQueue },
): void {
  const [newer] = readMemoryRows(context.store, [newerNo]) as [MemoryRow];
  const moved = takePlace(context, { older, newer, field: 'supersedes', withinTags });
  toReindex.bytes += MOVED_BYTES * (moved ?? 0);
  if (moved !== undefined) toReindex.settled += settlingBytes(older);
}

/** Input of `storeMemory`: a memory that gets a row of its own, even if a stored one has the same text. */
interface StoredAnew {
  readonly memory: NewMemory;
  readonly userNo: number;
  /** Whole hash of the memory's text, from `contentHash`: 16 bytes. The row keeps the first 8. */
  readonly hash: Buffer;
  readonly bulk: boolean;
  /** Value of an item as JSON; null or left out if the memory is no item or has no value. */
  readonly value?: string | null;
  /** Kind of the memory's job: `import` for one that is encoded but not linked; `memory` by default. */
  readonly kind?: 'memory' | 'import';
  /** Gets the memories whose words the caller then writes anew; left out if that is to be done at once. */
  readonly toReindex?: ReindexQueue;
}

/**
 * Writes a new memory: its rows, its words, its ledger job, and the event `memory.stored`. It also rewrites the indexed
 * words of the memories that follow it in its session, since the context by which they are found now includes the new
 * memory, or makes some of them wait (`reindexFollowers`); with `toReindex` it only adds them there, and the caller
 * rewrites them.
 */
export function storeMemory(
  context: WriteContext,
  { memory, userNo, hash, bulk, value = null, kind = 'memory', toReindex }: StoredAnew,
): Accepted {
  const { store, now } = context;
  const id = context.newId();
  const { sessionId } = memory;
  const where = { userNo, sessionId, eventTime: memory.eventTime ?? now, isChunk: false };
  const latest = latestOf(store, where);
  const memoryNo = insertMemory(store, { id, userNo, memory, value, contentHash: hash, now });
  insertDynamics(store, {
    memoryNo,
    salience: initialSalience(memory.importance, 0),
    decayLambda: decayLambdaOf('semantic', context.config.OM_DECAY_LAMBDA),
    writerNo: ensureWriter(store, context.writtenBy),
    now,
  });
  const place = { memoryNo, ...where };
  const { context: before, followers } =
    latest === undefined
      ? contextAndFollowers(store, place)
      : contextAndFollowersAmong(store, place, { latest, content: memory.content });
  const indexedBytes = insertText(store, {
    memoryNo,
    title: memory.title,
    content: memory.content,
    gist: memory.gist,
    entities: memory.entities ?? [],
    tags: memory.tags,
    files: memory.files,
    context: before,
  });
  if (toReindex === undefined) reindexFollowers(store, followers);
  else enqueueReindex(store, toReindex, followers);
  const jobId = context.newId();
  const jobNo = insertJob(store, {
    id: jobId,
    memory: memoryNo,
    kind,
    step: 'encode',
    bulk,
    trace: context.trace,
    now,
  });
  return { memoryNo, id, jobId, jobNo, indexedBytes };
}

function findTwin(
  store: Store,
  {
    memory,
    userNo,
    hash,
    ...options
  }: { memory: NewMemory; userNo: number; hash: Buffer } & Parameters<typeof findDuplicate>[2],
): (Twin & Partial<NamedTwin>) | undefined {
  if (memory.externalId !== null) {
    return findByExternalId(store, { externalId: memory.externalId, userNo }, options.now);
  }
  if (memory.onDuplicate === 'keep') return undefined;
  return findDuplicate(store, { ...memory, contentHash: hash, userNo }, options);
}

/**
 * Checks that a new memory has the same text as the stored one with its external id. Passes if it has no external id.
 * @throws EngineError `conflict` if the texts differ
 */
function requireSameText(twin: Twin, { externalId }: NewMemory, hash: Buffer): void {
  if (externalId === null || contentHash(twin.content).equals(hash)) return;
  throw new EngineError(
    'conflict',
    `external_id belongs to memory ${twin.id}, whose text differs: PATCH that one instead`,
  );
}

/**
 * Checks that a stored memory or document has all tags to which the caller's key is bound, before an add or a put
 * changes it.
 * @param tags tags of what is stored
 * @param withinTags tags to which the key is bound; empty for a key without such a bound
 * @throws EngineError `conflict` if one of the bound tags is missing
 */
export function requireTags(tags: readonly string[], withinTags: readonly string[]): void {
  if (withinTags.every((tag) => tags.includes(tag))) return;
  throw new EngineError('conflict', 'this is stored already without the tags of your key, which cannot change it');
}

/** Reinforces a memory that was added again, and makes it active again if it was archived. */
function recogniseDuplicate({ store, config, now }: WriteContext, twin: Twin): Duplicate {
  reinforceMemory(store, twin.memoryNo, { boost: RECALL_SALIENCE_BOOST, now, perHour: config.OM_REINFORCE_PER_HOUR });
  if (twin.status === 'archived') {
    for (const row of readMemoryRows(store, [twin.memoryNo]))
      replaceMemory(store, row, { columns: {}, status: 'active', now });
  }
  return {
    kind: 'duplicate',
    id: twin.id,
    primarySector: twin.primary_sector,
    sectors: sectorsFromBits(twin.sectors, twin.primary_sector),
    state: twin.state,
  };
}

/**
 * Time (ms) after a refusal in which the backlog is not counted again. Otherwise a client that retries at once would
 * cause a count each time, and every tenant would wait for that.
 */
const REFUSES_ON_MS = 500;

/**
 * Refuses to add jobs if more than `OM_MAX_BACKLOG` would then wait; else counts `adding` jobs as waiting. The ledger
 * is counted only when the jobs that passed here since the last count could have reached the limit, and not within 500
 * ms of a count that refused: a count of a million rows takes tens of milliseconds. Jobs that do not pass here, such as
 * those of a document's chunks, are noticed at the next count only, so the limit can be exceeded by them.
 * @throws EngineError `unavailable` with `retryAfterMs`
 */
export function refuseOverBacklog({ store, config, backlog, now }: WriteContext, adding: number): void {
  const isOver = () => backlog.atMost + adding > config.OM_MAX_BACKLOG;
  const refusedJustNow = Math.abs(now - (backlog.refusedAt ?? -Infinity)) < REFUSES_ON_MS;
  if (isOver() && !refusedJustNow) backlog.atMost = countWaiting(store);
  if (isOver()) {
    if (!refusedJustNow) backlog.refusedAt = now;
    throw new EngineError(
      'unavailable',
      `${backlog.atMost} jobs wait, the cap OM_MAX_BACKLOG is ${config.OM_MAX_BACKLOG}`,
      { retryAfterMs: 5_000 },
    );
  }
  backlog.atMost += adding;
}
