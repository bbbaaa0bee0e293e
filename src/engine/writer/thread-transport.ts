import { Worker } from 'node:worker_threads';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Metrics } from '../metrics.ts';
import type { SpaceIdentity } from '../tenant-file/open-tenant.ts';
import type { BusyTotals } from '../store/open-store.ts';
import type { GroupTransport } from './grouping-writer.ts';
import type { GroupReply, WriteGroup } from './writer.ts';

export interface WriterThreadData {
  readonly config: Config;
  /** The vector spaces that the settings name, as in `OpenTenantOptions`; null where nothing is embedded. */
  readonly identity: SpaceIdentity | readonly SpaceIdentity[] | null;
}

export type WriterMessage =
  | { readonly kind: 'commit'; readonly groups: readonly WriteGroup[] }
  | { readonly kind: 'evict'; readonly path: string }
  | { readonly kind: 'close' };

/**
 * Starts the thread that commits, so that an fsync or a wait for the lock never holds up the event loop that serves
 * requests. A round is sent at once, also while an earlier one is being committed, so that the thread never waits for
 * this one. It answers messages in order, several at a time. If it ends, every write fails with `unavailable`.
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
  const waiting: { resolve: (reply: unknown) => void; reject: (error: Error) => void }[] = [];
  let dead: EngineError | undefined;
  let busy: BusyTotals = { retries: 0, waitedMs: 0, timeouts: 0 };
  metrics.watchBusy(() => busy);
  const fail = (cause: unknown) => {
    dead ??= new EngineError('unavailable', 'the writer thread ended', { cause });
    for (const request of waiting.splice(0)) request.reject(dead);
  };
  thread.on('message', (replies: readonly unknown[]) => {
    for (const reply of replies) waiting.shift()?.resolve(reply);
  });
  thread.on('error', fail);
  thread.on('exit', fail);

  const ask = <T>(message: WriterMessage): Promise<T> =>
    dead
      ? Promise.reject(dead)
      : new Promise<T>((resolve, reject) => {
          waiting.push({ resolve: resolve as (reply: unknown) => void, reject });
          thread.postMessage(message);
        });

  return {
    async commit(groups) {
      const replies = await ask<readonly GroupReply[]>({ kind: 'commit', groups });
      busy = replies.at(-1)?.busy ?? busy;
      return replies;
    },
    evict: (path) => ask<void>({ kind: 'evict', path }),
    async close() {
      if (!dead) await ask<void>({ kind: 'close' });
      await thread.terminate();
    },
  };
}
