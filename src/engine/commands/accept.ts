import { decayLambdaOf, initialSalience, RECALL_SALIENCE_BOOST, sectorsFromBits } from '../dynamics.ts';
import { assert, EngineError, type ErrorCode, isEngineError } from '../errors.ts';
import { insertDynamics, reinforceMemory } from '../store/dynamics.ts';
import { findStoredReply, putStoredReply, MAX_REPLY_MEMORIES } from '../store/idempotency.ts';
import { countWaiting } from '../store/job-views.ts';
import { insertJob } from '../store/jobs.ts';
import { ensureUser, insertMemory, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import { findByExternalId, findDuplicate, type Twin } from '../store/duplicates.ts';
import type { Store } from '../store/open-store.ts';
import { replaceMemory } from '../store/revisions.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { neighboursOf } from '../store/session-context.ts';
import { ensureWriter } from '../store/writers.ts';
import { insertText, reindexText } from '../store/word-index/memory-text.ts';
import { contentHash } from '../text/content-hash.ts';
import { isRejected, rejected } from '../rejected-item.ts';
import type { AddOptions, AddOutcome, AddReply, NewMemory, RejectedItem, ScreenReport } from '../types.ts';
import { encodeReceipt } from './write-receipt.ts';
import { refuseOverQuota, type Quota } from './quota.ts';
import { deriveFrom, getReplaced, getSources, refuseSecondSuccessor, takePlace } from './relate.ts';
import type { WriteContext } from './write-context.ts';

/** An item of an add after its screening. `screened` is absent where the policy looks for nothing. */
export type ScreenedItem = RejectedItem | (NewMemory & { readonly screened?: ScreenReport });

/**
 * Runs the accept step, in the writer's transaction. The row of a memory, its words and its row of the ledger are
 * written together, so that whatever is answered 2xx is stored, searchable and owed its vector. Exact duplicates and
 * known Idempotency-Keys write no memory twice. An `external_id` that stands for another text rejects that item alone,
 * and so does a supersession that is refused.
 * @returns outcomes in the order of `items`; a known Idempotency-Key gets its stored reply, whatever has changed since
 * @throws  EngineError `unavailable` as `refuseOverBacklog` and `storage_full` as `refuseOverQuota`, for all items;
 *   what `findStoredReply` throws
 */
export function addMemories(
  context: WriteContext,
  {
    items,
    options,
    quota = null,
  }: { readonly items: readonly ScreenedItem[]; readonly options: AddOptions; readonly quota?: Quota | null },
): AddReply {
  const { store } = context;
  const stored = options.idempotency && findStoredReply(store, options.idempotency, items.length);
  if (stored) return stored;
  assert(
    options.idempotency === undefined || items.length <= MAX_REPLY_MEMORIES,
    'a reply that is kept is a short one',
  );
  const adding = items.filter((item) => !isRejected(item)).length;
  refuseOverBacklog(context, adding);
  refuseOverQuota(context, quota, adding);

  const accepted: Accepted[] = [];
  const outcomes: AddOutcome[] = [];
  for (const item of items) outcomes.push(acceptItem(context, { item, options, before: outcomes, accepted }));
  const [first, last] = [accepted[0], accepted.at(-1)];
  const reply: AddReply = {
    outcomes,
    token:
      first && last ? encodeReceipt({ storeId: ensureStoreId(store), first: first.jobNo, last: last.jobNo }) : null,
    replayed: false,
  };
  if (options.idempotency) {
    const memories = first && last ? { first: first.memoryNo, last: last.memoryNo } : null;
    putStoredReply(store, options.idempotency, { reply, memories, now: context.now });
  }
  return reply;
}

/** Errors that concern one item of an add, before anything was written for it. */
const REJECTING: ReadonlySet<ErrorCode> = new Set(['conflict', 'invalid', 'not_found']);

interface Accepted {
  readonly memoryNo: number;
  readonly id: string;
  readonly jobId: string;
  readonly jobNo: number;
}

/**
 * Accepts one item of an add.
 * @param asked.before outcomes of the items before it
 * @param asked.accepted memories that this add stored; a new one is put behind them
 */
function acceptItem(
  context: WriteContext,
  asked: {
    readonly item: ScreenedItem;
    readonly options: AddOptions;
    readonly before: readonly AddOutcome[];
    readonly accepted: Accepted[];
  },
): AddOutcome {
  const { item, options, before, accepted } = asked;
  if (isRejected(item)) return item;
  const { screened, ...memory } = item;
  const report = screened === undefined ? {} : { screened };
  try {
    const sources = getSources(context, sourcesOf(options, before));
    const result = acceptMemory(context, memory, options);
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
 * Lists the ids of what the next item of an add repeats or sums up.
 * @param before outcomes of the items before it
 * @throws EngineError with the refusal of one of them that was refused
 */
function sourcesOf({ derived = [] }: AddOptions, before: readonly AddOutcome[]): string[] {
  const sources = derived.filter(({ item }) => item === before.length).flatMap(({ from }) => from);
  return sources.map((source) => {
    if (typeof source === 'string') return source;
    const outcome = before[source];
    assert(outcome !== undefined, 'an item of an add rests on items before it');
    if (isRejected(outcome)) throw new EngineError(outcome.error.code as ErrorCode, outcome.error.message);
    return outcome.id;
  });
}

type Duplicate = Extract<AddOutcome, { kind: 'duplicate' }>;

function acceptMemory(
  context: WriteContext,
  memory: NewMemory,
  { bulk = false, withinTags = [] }: AddOptions,
): Accepted | Duplicate {
  const { store, now } = context;
  const older = memory.supersedes === undefined ? undefined : getReplaced(context, memory.supersedes, memory.userId);
  const userNo = ensureUser(store, memory.userId);
  const hash = contentHash(memory.content);
  const twin = findTwin(store, { memory, userNo, hash, now });
  if (twin !== undefined) {
    requireTags(JSON.parse(twin.tags) as string[], withinTags);
    requireSameText(twin, memory, hash);
    if (older !== undefined) supersede(context, older, twin.memoryNo);
    return recogniseDuplicate(context, twin);
  }

  if (older !== undefined) refuseSecondSuccessor(context, older, 'supersedes');
  const stored = storeMemory(context, { memory, userNo, hash, bulk });
  if (older !== undefined) supersede(context, older, stored.memoryNo);
  return stored;
}

function supersede(context: WriteContext, older: MemoryRow, newerNo: number): void {
  const [newer] = readMemoryRows(context.store, [newerNo]) as [MemoryRow];
  takePlace(context, { older, newer, field: 'supersedes' });
}

/** A memory to store, which nothing that is stored equals. */
interface StoredAnew {
  readonly memory: NewMemory;
  readonly userNo: number;
  /** Whole hash of the text. */
  readonly hash: Buffer;
  readonly bulk: boolean;
  /** Value of an item as JSON; null or left out for none. */
  readonly value?: string | null;
  /** Kind of its job: `import` for a memory whose links come with it; `memory` where it is left out. */
  readonly kind?: 'memory' | 'import';
}

/** Writes a new memory: its rows, its words, those that it changes in its session, and its row of the ledger. */
export function storeMemory(
  context: WriteContext,
  { memory, userNo, hash, bulk, value = null, kind = 'memory' }: StoredAnew,
): Accepted {
  const { store, now } = context;
  const id = context.newId();
  const memoryNo = insertMemory(store, { id, userNo, memory, value, contentHash: hash, now });
  insertDynamics(store, {
    memoryNo,
    salience: initialSalience(memory.importance, 0),
    decayLambda: decayLambdaOf('semantic', context.config.OM_DECAY_LAMBDA),
    writerNo: ensureWriter(store, context.writtenBy),
    now,
  });
  const place = { memoryNo, userNo, sessionId: memory.sessionId, eventTime: memory.eventTime ?? now, isChunk: false };
  const { context: before, successors } = neighboursOf(store, place);
  insertText(store, {
    memoryNo,
    title: memory.title,
    content: memory.content,
    gist: memory.gist,
    entities: memory.entities ?? [],
    tags: memory.tags,
    files: memory.files,
    context: before,
  });
  reindexText(store, successors);
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
  return { memoryNo, id, jobId, jobNo };
}

function findTwin(
  store: Store,
  { memory, userNo, hash, now }: { memory: NewMemory; userNo: number; hash: Buffer; now: number },
): Twin | undefined {
  if (memory.externalId !== null) {
    return findByExternalId(store, { externalId: memory.externalId, userNo }, now);
  }
  if (memory.onDuplicate === 'keep') return undefined;
  return findDuplicate(store, { ...memory, contentHash: hash, userNo }, now);
}

/** Checks that the memory with the external id of a new one says the same. @throws EngineError `conflict` */
function requireSameText(twin: Twin, { externalId }: NewMemory, hash: Buffer): void {
  if (externalId === null || contentHash(twin.content).equals(hash)) return;
  throw new EngineError(
    'conflict',
    `external_id belongs to memory ${twin.id}, whose text differs: PATCH that one instead`,
  );
}

/**
 * Checks that what an add found already there carries the tags that bound the caller.
 * @throws EngineError `conflict`
 */
export function requireTags(tags: readonly string[], withinTags: readonly string[]): void {
  if (withinTags.every((tag) => tags.includes(tag))) return;
  throw new EngineError('conflict', 'this is stored already without the tags of your key, which cannot change it');
}

/** Reinforces a memory that was said again, and makes it active again if it was archived. */
function recogniseDuplicate({ store, config, now }: WriteContext, twin: Twin): Duplicate {
  reinforceMemory(store, twin.memoryNo, {
    boost: RECALL_SALIENCE_BOOST,
    now,
    perHour: config.OM_REINFORCE_PER_HOUR,
  });
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
 * Time after a refusal in which adds are refused without another count (ms). A client that asks again at once would
 * otherwise have the backlog counted each time, and every tenant would wait for that.
 */
const REFUSES_ON_MS = 500;

/**
 * Refuses to add jobs if more than `OM_MAX_BACKLOG` would then wait, or else counts `adding` jobs as waiting. The
 * backlog is counted only when the jobs added since the last count could have passed the cap, and not again just after
 * a count that refused: a count of a million rows takes tens of milliseconds.
 * @throws EngineError `unavailable`
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
      {
        retryAfterMs: 5_000,
      },
    );
  }
  backlog.atMost += adding;
}
