import { EngineError, reviveError, serialiseError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import { unpackResult } from '../store/packed-json.ts';
import type { Span, Tracing } from '../tracing.ts';
import type { WriteCommandName } from './commands.ts';
import { mustBeSeen } from './upkeep-writes.ts';
import { type GroupReply, MAX_GROUP_REQUESTS, type Writer, type WriteGroup, type WriteReply } from './writer.ts';

/**
 * Sends groups of requests to the code that commits them: on this thread, on the writer thread, or in the one process
 * that commits for several API processes (`Lead`).
 */
export interface GroupTransport {
  /**
   * Commits a group. Groups for one file that wait at the same time may share a transaction, and are answered in order.
   * The promise rejects only if there is no reply at all, for example because the thread has ended.
   */
  commit(group: WriteGroup): Promise<GroupReply>;
  /**
   * Returns the input of a request as the group is to hold it, if the group is sent in a message. Absent where it is
   * not, so that the input can stay as it is.
   */
  readonly pack?: ((input: unknown) => unknown) | undefined;
  /** Closes a tenant's file at `path`, which is about to be removed; a later commit opens it again. */
  evict(path: string): Promise<void>;
  /** Closes every file. */
  close(): Promise<void>;
  /**
   * Resolves with the error if the writer thread has ended before `close`: it is not replaced, and no write succeeds
   * any more. Absent if the code that commits is not on a thread of this process.
   */
  readonly died?: Promise<Error>;
}

/** A request that waits for its commit. */
interface Pending {
  readonly path: string;
  readonly name: WriteCommandName;
  readonly input: unknown;
  readonly writtenBy?: string | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Span of the write; left out if the request is not traced. */
  readonly span?: Span | undefined;
}

/** What a writer reports to. */
interface WriterReports {
  readonly metrics: Metrics;
  /** Tracing of requests; null, the default, traces nothing. */
  readonly tracing?: Tracing | null;
  /** Called before writes that later reads must see are answered, with the position of the tenant that holds them. */
  readonly onSeen?: ((path: string, position: number) => void) | undefined;
}

/**
 * Creates a writer that collects the requests of one event loop iteration into groups for each file, of at most 256
 * requests. It sends a group without waiting for the replies to earlier ones.
 */
export function createGroupingWriter(
  transport: GroupTransport,
  { metrics, tracing = null, onSeen }: WriterReports,
): Writer {
  let waiting: Pending[] = [];
  /** The groups that were sent and have no reply yet. */
  const underWay = new Set<Promise<void>>();
  let closed = false;

  const sendWaiting = () => {
    const all = waiting;
    waiting = [];
    for (const [path, members] of Map.groupBy(all, (pending) => pending.path)) {
      for (let at = 0; at < members.length; at += MAX_GROUP_REQUESTS) {
        const sent = commitMembers(path, members.slice(at, at + MAX_GROUP_REQUESTS));
        underWay.add(sent);
        void sent.then(() => underWay.delete(sent));
      }
    }
  };

  const commitMembers = async (path: string, members: readonly Pending[]): Promise<void> => {
    const startedAt = performance.now();
    let reply: GroupReply;
    try {
      reply = await transport.commit({ path, requests: members.map(toRequest) });
    } catch (error) {
      for (const pending of members) refuse(pending, error);
      return;
    }
    for (const { ms, requests } of reply.counted) {
      metrics.commits.observe(ms / 1000);
      metrics.commitRequests.observe(requests);
    }
    if (members.some(({ name }) => mustBeSeen(name))) onSeen?.(path, reply.position);
    for (const [place, pending] of members.entries()) {
      if (tracing !== null) recordCommit(tracing, pending, { startedAt, requests: reply.commit.requests });
      void settle(write, pending, reply.replies[place]!);
    }
  };

  const write: Writer['write'] = (path, name, input, writtenBy) => {
    if (closed) return Promise.reject(new EngineError('unavailable', 'shutting down', { retryAfterMs: 1_000 }));
    return new Promise((resolve, reject) => {
      // Packed here, and not where the group is sent: callers take turns before they write much.
      const given = transport.pack?.(input) ?? input;
      const settled = { resolve: resolve as (value: unknown) => void, reject };
      const pending: Pending = { path, name, input: given, writtenBy, ...settled };
      // The group is sent after the current turn of the event loop, so that requests that were read from sockets
      // together are committed together.
      if (waiting.length === 0) setImmediate(sendWaiting);
      waiting.push(tracing === null ? pending : { ...pending, span: spanOf(tracing, name) });
    });
  };

  return {
    write,
    evict: (path) => transport.evict(path),
    async close() {
      closed = true;
      sendWaiting();
      await Promise.all(underWay);
      await transport.close();
    },
  };
}

function toRequest({ name, input, writtenBy, span }: Pending): WriteGroup['requests'][number] {
  const trace = span?.traceparent ?? null;
  return {
    name,
    input,
    ...(writtenBy === undefined ? {} : { writtenBy }),
    ...(trace === null ? {} : { trace }),
  };
}

/**
 * Answers a request, once the words are written of the memories that its write has made wait. Each further write does
 * one or more; those that others make wait meanwhile come after them.
 */
async function settle(write: Writer['write'], pending: Pending, reply: WriteReply): Promise<void> {
  if (!reply.ok) return refuse(pending, reviveError(reply.error));
  try {
    let left = reply.delayed;
    while (left > 0 && (await write(pending.path, 'reindexWaiting', {}))) left -= 1;
  } catch {
    // What is stored must be answered. The upkeep writes the other words.
  }
  pending.span?.end();
  if (reply.texts !== undefined) unpackResult(reply.value, reply.texts);
  pending.resolve(reply.value);
}

function refuse({ span, reject }: Pending, error: unknown): void {
  span?.fail(serialiseError(error).code);
  span?.end();
  reject(error);
}

/**
 * Starts the span of a write, which lasts from the call until its reply. Jobs that the write makes continue its trace.
 * Returns undefined for a write outside of a traced request.
 */
function spanOf(tracing: Tracing, name: WriteCommandName): Span | undefined {
  return tracing.active() && tracing.start(`write ${name}`);
}

/**
 * Records a `commit` span under the span of a request. The commit is shared with other requests. Its span begins when
 * the group was sent.
 */
function recordCommit(
  tracing: Tracing,
  { span }: Pending,
  { startedAt, requests }: { readonly startedAt: number; readonly requests: number },
): void {
  span?.run(() => tracing.start('commit', { startedAt, attributes: { 'cairn.commit.requests': requests } })?.end());
}
