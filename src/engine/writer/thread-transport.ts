import { Worker } from 'node:worker_threads';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { BusyTotals } from '../store/open-store.ts';
import { packInput } from '../store/packed-json.ts';
import type { GroupTransport } from './grouping-writer.ts';
import type { GroupReply, WriteGroup } from './writer.ts';

/** What the writer thread gets when it starts. */
export interface WriterThreadData {
  readonly config: Config;
  /** The vector spaces that the settings name, for `OpenTenantOptions`; null with `OM_EMBEDDINGS=none`. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
}

/** A message to the writer thread: a group to commit, or files to close. Its answer has the same `id`. */
export type WriterMessage = { readonly id: number } & (
  | { readonly kind: 'commit'; readonly group: WriteGroup }
  | { readonly kind: 'evict'; readonly path: string }
  | { readonly kind: 'close' }
);

/** Answer to a message: a `GroupReply` to a `commit`, undefined to `evict` and `close`. */
export interface WriterAnswer {
  readonly id: number;
  readonly value: unknown;
}

/** A message before it gets its id. */
type Asked = WriterMessage extends infer Message ? (Message extends unknown ? Omit<Message, 'id'> : never) : never;

/**
 * Starts the writer thread. It commits, so that an fsync or a wait for the lock never blocks the event loop that serves
 * requests. A group is sent to the thread at once, even while an earlier group is being committed, so that the thread
 * does not wait for work. The thread answers the groups of a file in order, and files take turns (`CommitQueue`). If
 * the thread ends, `died` resolves, and every write fails with `unavailable`; one that waits for its answer also has
 * `mayBeWritten`.
 */
export function startWriterThread({
  config,
  identity,
  metrics,
}: WriterThreadData & { readonly metrics: Metrics }): GroupTransport {
  const thread = new Worker(new URL(`./writer-thread${import.meta.filename.slice(-3)}`, import.meta.url), {
    workerData: { config, identity } satisfies WriterThreadData,
    name: 'cairn-writer',
  });
  const waiting = new Map<number, { resolve: (reply: unknown) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  let dead: EngineError | undefined;
  let isClosing = false;
  const died = Promise.withResolvers<Error>();
  let busy: BusyTotals = { retries: 0, waitedMs: 0, timeouts: 0 };
  metrics.watchBusy(() => busy);
  const fail = (cause: unknown) => {
    const ended = (mayBeWritten: boolean) =>
      new EngineError('unavailable', 'the writer thread ended', { cause, mayBeWritten });
    dead ??= ended(false);
    if (!isClosing) died.resolve(cause instanceof Error ? cause : dead);
    // It may have committed what it was asked to, and ended before its answer came.
    for (const request of waiting.values()) request.reject(ended(true));
    waiting.clear();
  };
  thread.on('message', ({ id, value }: WriterAnswer) => {
    waiting.get(id)?.resolve(value);
    waiting.delete(id);
  });
  thread.on('error', fail);
  thread.on('exit', fail);

  const ask = <T>(message: Asked): Promise<T> =>
    dead
      ? Promise.reject(dead)
      : new Promise<T>((resolve, reject) => {
          const id = ++lastId;
          waiting.set(id, { resolve: resolve as (reply: unknown) => void, reject });
          thread.postMessage({ id, ...message } satisfies WriterMessage);
        });

  return {
    async commit(group) {
      const reply = await ask<GroupReply>({ kind: 'commit', group });
      busy = reply.busy;
      return reply;
    },
    pack: packInput,
    evict: (path) => ask<void>({ kind: 'evict', path }),
    died: died.promise,
    async close() {
      isClosing = true;
      if (!dead) await ask<void>({ kind: 'close' });
      await thread.terminate();
    },
  };
}
