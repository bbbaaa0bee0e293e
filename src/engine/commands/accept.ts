import { decayLambdaOf, initialSalience, RECALL_SALIENCE_BOOST, sectorsFromBits } from '../dynamics.ts';
import { assert, EngineError, isEngineError } from '../errors.ts';
import { insertDynamics, reinforceMemory } from '../store/dynamics.ts';
import { findStoredReply, putStoredReply, REPLY_MEMORIES_MOST } from '../store/idempotency.ts';
import { countWaiting, insertJob } from '../store/jobs.ts';
import {
  ensureUser,
  findByExternalId,
  findDuplicate,
  insertMemory,
  readMemoryRows,
  type Twin,
} from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { replaceMemory } from '../store/revisions.ts';
import { ensureStoreId } from '../store/store-info.ts';
import { contextOf, successorsOf } from '../store/session-context.ts';
import { putText, reindexText } from '../store/word-index/memory-text.ts';
import { contentHash } from '../text/content-hash.ts';
import type { AddOptions, AddReply, AddOutcome, NewMemory } from '../types.ts';
import { encodeToken } from './token.ts';
import type { WriteContext } from './write-context.ts';

/**
 * The accept step, inside the writer's transaction: memory row, its words and its ledger row are written together, so that what is
 * answered 2xx is stored, searchable and owed its vector. Exact duplicates and known Idempotency-Keys write nothing twice.
 */
export function addMemories(
  context: WriteContext,
  { items, options }: { readonly items: readonly NewMemory[]; readonly options: AddOptions },
): AddReply {
  const { store } = context;
  const stored = options.idempotency && findStoredReply(store, options.idempotency);
  if (stored) return stored;
  assert(
    options.idempotency === undefined || items.length <= REPLY_MEMORIES_MOST,
    'a reply that is kept is a short one',
  );
  refuseOverBacklog(context, items.length);

  const accepted: Accepted[] = [];
  const outcomes = items.map((memory): AddOutcome => {
    try {
      const result = acceptMemory(context, memory, options.bulk ?? false);
      if ('seq' in result) accepted.push(result);
      return 'seq' in result ? { kind: 'accepted', id: result.id, jobId: result.jobId, jobSeq: result.jobSeq } : result;
    } catch (error) {
      if (!isEngineError(error, 'conflict')) throw error;
      return { kind: 'rejected', error: { code: error.code, message: error.message } };
    }
  });
  const [first, last] = [accepted[0], accepted.at(-1)];
  const reply: AddReply = {
    outcomes,
    token:
      first && last ? encodeToken({ storeId: ensureStoreId(store), first: first.jobSeq, last: last.jobSeq }) : null,
    replayed: false,
  };
  if (options.idempotency) {
    const memories = first && last ? { first: first.seq, last: last.seq } : null;
    putStoredReply(store, options.idempotency, { reply, memories, now: context.now });
  }
  return reply;
}

interface Accepted {
  readonly seq: number;
  readonly id: string;
  readonly jobId: string;
  readonly jobSeq: number;
}

function acceptMemory(context: WriteContext, memory: NewMemory, bulk: boolean): Accepted | AddOutcome {
  const { store, now } = context;
  const userNo = ensureUser(store, memory.userId);
  const hash = contentHash(memory.content);
  const twin = findTwin(store, { memory, userNo, hash, now });
  if (twin !== undefined) return recogniseDuplicate(context, twin);

  const id = context.newId();
  const seq = insertMemory(store, { id, userNo, memory, contentHash: hash, now });
  insertDynamics(store, {
    seq,
    salience: initialSalience(memory.importance, 0),
    decayLambda: decayLambdaOf('semantic', context.config.OM_DECAY_LAMBDA),
    now,
  });
  const place = { seq, userNo, sessionId: memory.sessionId, eventTime: memory.eventTime ?? now, isChunk: false };
  putText(store, {
    seq,
    title: memory.title,
    content: memory.content,
    gist: memory.gist,
    entities: memory.entities ?? [],
    tags: memory.tags,
    context: contextOf(store, place),
  });
  reindexText(store, successorsOf(store, place));
  const jobId = context.newId();
  const jobSeq = insertJob(store, { id: jobId, memory: seq, step: 'encode', bulk, trace: context.trace, now });
  return { seq, id, jobId, jobSeq };
}

function findTwin(
  store: Store,
  { memory, userNo, hash, now }: { memory: NewMemory; userNo: number; hash: Buffer; now: number },
): Twin | undefined {
  if (memory.externalId !== null) {
    const known = findByExternalId(store, { externalId: memory.externalId, userNo }, now);
    if (known !== undefined && !contentHash(known.content).equals(hash)) {
      throw new EngineError(
        'conflict',
        `external_id belongs to memory ${known.id}, whose text differs: PATCH that one instead`,
      );
    }
    return known;
  }
  return findDuplicate(store, { ...memory, contentHash: hash, userNo }, now);
}

/** Saying a thing again reinforces it, and brings it back if it was archived. */
function recogniseDuplicate({ store, now }: WriteContext, twin: Twin): AddOutcome {
  reinforceMemory(store, twin.seq, RECALL_SALIENCE_BOOST, now);
  if (twin.status === 'archived') {
    for (const row of readMemoryRows(store, [twin.seq]))
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

/** A client that does not wait before it asks again would otherwise have the backlog counted each time, and every tenant wait for that. */
const REFUSES_ON_MS = 500;

/**
 * Counts the backlog only when what was added since the last count could have reached the cap, and not again just after a count that
 * refused: one over a million rows takes tens of milliseconds.
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
