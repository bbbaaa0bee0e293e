import { prefetchOfAdds, type AddInput } from '../commands/accept.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { hasManyTrips } from '../store/foresight.ts';
import { LateError } from '../store/late-error.ts';
import { storageError } from '../store/storage-errors.ts';
import { indexedBytes, MAX_INDEXED_BYTES } from '../store/word-index/memory-text.ts';
import { countDelays, countWaitingContexts } from '../store/word-index/waiting-contexts.ts';
import { inSavepoint } from '../store/savepoint.ts';
import { createAuditTrail, type AuditTrail } from './audit-trail.ts';
import { describeCommand } from './audited-commands.ts';
import { WRITE_COMMANDS, type WriteCommandName } from './commands.ts';

/** A command to run, with its input and in whose name it is run. */
export interface WriteRequest {
  readonly name: WriteCommandName;
  /** Input of the command, as its entry in `WRITE_COMMANDS` takes it. */
  readonly input: unknown;
  /**
   * Public id of the key of the caller, who becomes the writer of what the command stores: `environment` for
   * OM_API_KEY, `anonymous` for a caller without a key. Left out for upkeep, which no caller requested.
   */
  readonly writtenBy?: string;
  /** W3C trace context of the request; left out if it is not traced. */
  readonly trace?: string;
}

/** The part of a command's context that all commands of one commit have in common. */
export type GroupContext = Omit<WriteContext, 'writtenBy' | 'trace'>;

/**
 * Result of one request: what its command returned, or the error with which it was refused. `delayed` is the number of
 * memories that wait for `reindexWaiting` after the command; 0 if it has made none wait itself.
 */
export type WriteResult =
  | { readonly ok: true; readonly value: unknown; readonly delayed: number }
  | { readonly ok: false; readonly error: unknown };

/**
 * Runs requests in one transaction, so that they share one fsync. A request that is refused does not affect the others.
 * No result is returned before the commit.
 *
 * The simple way to undo a refused request would be a savepoint around each request. But each savepoint makes FTS5
 * write out what it holds in memory: a group of 32 then writes 32 small segments instead of one, and an add costs three
 * times as much. So savepoints are used only in a second run of the group. It is needed if a request was refused after
 * it had written something, or if it is unknown which request a failed statement belongs to (`LateError`). A statement
 * that inserts several rows or fires a trigger makes SQLite open such a savepoint by itself. An add has no such
 * statement.
 * @param isTurnOver called after each request; true means that no further request is to run in this transaction. None
 *   does either once the requests make much work for the word index (`MAX_INDEXED_BYTES`), or in PostgreSQL took 150
 *   round trips
 * @returns the results in the order of `requests`; fewer than there are requests if it ended before. The result of a
 *   refused request holds its error
 * @throws the error that made the whole transaction fail; nothing is stored then
 */
export function commitGroup(
  context: GroupContext,
  requests: readonly WriteRequest[],
  isTurnOver: () => boolean = () => false,
): WriteResult[] {
  const { store, backlog } = context;
  const isOver = () => isTurnOver() || indexedBytes(store) >= MAX_INDEXED_BYTES || hasManyTrips(store);
  const atMost = backlog.atMost;
  try {
    const prefetch = prefetchOf(context, requests);
    return store.write(() => {
      prefetch.then();
      return withTrail(context, (trail) => runUntil(isOver, requests, (request) => attempt(context, request, trail)));
    }, prefetch.first);
  } catch (error) {
    backlog.atMost = Math.min(atMost, backlog.atMost);
    if (!(error instanceof HalfWritten || error instanceof LateError)) throw error;
    if (requests.length === 1) return [{ ok: false, error: error instanceof LateError ? error : error.cause }];
    return store.write(() =>
      withTrail(context, (trail) => runUntil(isOver, requests, (request) => runInSavepoint(context, request, trail))),
    );
  }
}

function runUntil(
  isOver: () => boolean,
  requests: readonly WriteRequest[],
  run: (request: WriteRequest) => WriteResult,
): WriteResult[] {
  const results: WriteResult[] = [];
  for (const request of requests) {
    results.push(run(request));
    if (isOver()) break;
  }
  return results;
}

function prefetchOf(context: GroupContext, requests: readonly WriteRequest[]): ReturnType<typeof prefetchOfAdds> {
  const adds = context.store.ahead === null ? [] : requests.filter(({ name }) => name === 'addMemories');
  return prefetchOfAdds(
    context,
    adds.map(({ input, writtenBy = null }) => ({ input: input as AddInput, writtenBy })),
  );
}

/** Runs commands, and writes their audit records in the same transaction. */
function withTrail<T>({ store, now }: GroupContext, work: (trail: AuditTrail) => T): T {
  const trail = createAuditTrail();
  const result = work(trail);
  trail.write(store, now);
  return result;
}

/** Thrown for a request that was refused after it had written something: its transaction must not be committed. */
class HalfWritten extends Error {}

function attempt(context: GroupContext, request: WriteRequest, trail: AuditTrail): WriteResult {
  const before = context.store.changes;
  try {
    return run(context, request, trail);
  } catch (error) {
    // A full disk may have ended the transaction itself.
    if (context.store.transactionNo === undefined) throw error;
    if (context.store.changes !== before) throw new HalfWritten('', { cause: storageError(error) });
    return { ok: false, error: storageError(error) };
  }
}

function runInSavepoint(context: GroupContext, request: WriteRequest, trail: AuditTrail): WriteResult {
  const { atMost } = context.backlog;
  return inSavepoint<WriteResult>(
    context.store,
    () => run(context, request, trail),
    (error) => {
      context.backlog.atMost = Math.min(atMost, context.backlog.atMost);
      return { ok: false, error: storageError(error) };
    },
  );
}

function run(shared: GroupContext, { name, input, trace, writtenBy }: WriteRequest, trail: AuditTrail): WriteResult {
  const command = WRITE_COMMANDS[name] as (context: WriteContext, input: unknown) => unknown;
  const by = writtenBy ?? null;
  const before = shared.store.changes;
  const delays = countDelays(shared.store);
  const { store, config, now, newId, backlog } = shared;
  const context: WriteContext = {
    store,
    config,
    now,
    newId,
    backlog,
    get indexes() {
      return shared.indexes;
    },
    writtenBy: by,
    trace,
  };
  const output = command(context, input);
  // A command that found nothing to change leaves no record.
  const isDone = name === 'recordAction' || shared.store.changes !== before;
  const audited = shared.config.OM_AUDIT === 'off' || !isDone ? null : describeCommand(name, input, output);
  if (audited !== null) trail.note(by, audited);
  return { ok: true, value: output, delayed: countDelays(store) === delays ? 0 : countWaitingContexts(store) };
}
