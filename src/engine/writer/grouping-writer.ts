import { EngineError, reviveError, serialiseError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { Span, Tracing } from '../tracing.ts';
import type { WriteCommandName, WriteInput, WriteOutput } from './commands.ts';
import { type GroupReply, MAX_ROUND_REQUESTS, type Writer, type WriteGroup, type WriteReply } from './writer.ts';

/** The place where groups are committed: this thread or the writer thread. */
export interface GroupTransport {
  /**
   * Commits groups, one for each file, and returns their replies in the same order. Groups of several calls that wait
   * may share a transaction; calls are answered in order. It rejects only if there is no reply at all, as when the
   * thread has ended.
   */
  commit(groups: readonly WriteGroup[]): Promise<readonly GroupReply[]>;
  /** Closes a tenant's file; a later commit opens it again. */
  evict(path: string): Promise<void>;
  /** Closes every file. */
  close(): Promise<void>;
}

/** A request that waits for its commit. */
interface Pending {
  readonly path: string;
  readonly name: WriteCommandName;
  readonly input: unknown;
  readonly writtenBy?: string | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Span of the write, if the request that waits for it is traced. */
  readonly span?: Span | undefined;
}

/**
 * Creates a writer that gathers the requests of one turn of the event loop into a round, and sends it without waiting
 * for the rounds before it.
 */
export function createGroupingWriter(
  transport: GroupTransport,
  metrics: Metrics,
  tracing: Tracing | null = null,
): Writer {
  let waiting: Pending[] = [];
  let lastRound: Promise<void> = Promise.resolve();
  let closed = false;

  const sendWaiting = () => {
    const all = waiting;
    waiting = [];
    for (let at = 0; at < all.length; at += MAX_ROUND_REQUESTS)
      lastRound = commitRound(all.slice(at, at + MAX_ROUND_REQUESTS));
  };

  const commitRound = async (batch: readonly Pending[]) => {
    const byPath = [...Map.groupBy(batch, (pending) => pending.path)];
    const startedAt = performance.now();
    let replies: readonly GroupReply[];
    try {
      replies = await transport.commit(byPath.map(([path, members]) => ({ path, requests: members.map(toRequest) })));
    } catch (error) {
      for (const pending of batch) refuse(pending, error);
      return;
    }
    for (const [index, [, members]] of byPath.entries()) {
      const { commit, replies: answers } = replies[index]!;
      if (!commit.isRepeated) {
        metrics.commits.observe(commit.ms / 1000);
        metrics.commitRequests.observe(commit.requests);
      }
      for (const [position, pending] of members.entries()) {
        if (tracing !== null) recordCommit(tracing, pending, { startedAt, requests: commit.requests });
        settle(pending, answers[position]!);
      }
    }
  };

  return {
    write<N extends WriteCommandName>(
      path: string,
      name: N,
      input: WriteInput<N>,
      writtenBy?: string,
    ): Promise<WriteOutput<N>> {
      if (closed) return Promise.reject(new EngineError('unavailable', 'shutting down', { retryAfterMs: 1_000 }));
      return new Promise((resolve, reject) => {
        const pending: Pending = { path, name, input, writtenBy, resolve: resolve as (value: unknown) => void, reject };
        // The round is sent after the current turn of the event loop, so that requests that were read from sockets
        // together are committed together.
        if (waiting.length === 0) setImmediate(sendWaiting);
        waiting.push(tracing === null ? pending : { ...pending, span: spanOf(tracing, name) });
      });
    },
    evict: (path) => transport.evict(path),
    async close() {
      closed = true;
      sendWaiting();
      await lastRound;
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

function settle(pending: Pending, reply: WriteReply): void {
  if (!reply.ok) return refuse(pending, reviveError(reply.error));
  pending.span?.end();
  pending.resolve(reply.value);
}

function refuse({ span, reject }: Pending, error: unknown): void {
  span?.fail(serialiseError(error).code);
  span?.end();
  reject(error);
}

/**
 * Starts the span of a write, which lasts from the call until its answer. Jobs that the write makes carry its trace on.
 * A write that no request waits for is not traced.
 */
function spanOf(tracing: Tracing, name: WriteCommandName): Span | undefined {
  return tracing.active() && tracing.start(`write ${name}`);
}

/** Records the span of the commit that a request shared with others, which began when the groups were sent off. */
function recordCommit(
  tracing: Tracing,
  { span }: Pending,
  { startedAt, requests }: { readonly startedAt: number; readonly requests: number },
): void {
  span?.run(() => tracing.start('commit', { startedAt, attributes: { 'cairn.commit.requests': requests } })?.end());
}
