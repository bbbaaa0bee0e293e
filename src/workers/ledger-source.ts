import { setImmediate as yieldTurn, setTimeout as pause } from 'node:timers/promises';
import { type TenantPool, hasDueJob, hasDueJobAt } from '../engine/for-workers.ts';
import { type Clock, type Logger, TICK, serialiseError } from '../engine/index.ts';
import type { DueStep, JobSource, RunWork } from './job-source.ts';

/** Finds work in the ledgers themselves, for a worker without queues. Tenants with work take turns, a batch each. */
export interface LedgerSource extends JobSource {
  /**
   * Tells of new work in a tenant's file. A hint that is lost costs a second or, where the file is not open, the time
   * until the next tick.
   */
  wake(path: string): void;
}

export interface LedgerSourceOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pool: TenantPool;
  /** Lists the file of every tenant that has one. */
  readonly listPaths: () => readonly string[];
  /** Documents of one tenant that are read at once; there is one place more for those of another. */
  readonly readers: number;
}

/** Time between two looks at the open files, for hints that were lost and retries that fell due (ms). */
const LEDGER_LOOK_MS = 1_000;

export function createLedgerSource({ clock, logger, pool, listPaths, readers }: LedgerSourceOptions): LedgerSource {
  const stop = new AbortController();
  const { signal } = stop;
  // One batch of memories at a time, as its steps compute. Documents are read by children, and a language model takes
  // seconds to answer.
  const slots = { ingest: readers + 1, encode: 1, reason: 1 };
  const hints = { ingest: createHints(readers), encode: createHints(1), reason: createHints(1) };
  let loops: Promise<void>[] = [];

  return {
    start(run) {
      const serving = (Object.keys(slots) as DueStep[]).flatMap((step) =>
        Array.from({ length: slots[step] }, () => serve(step, run)),
      );
      const ticking = repeat(TICK.everyMs, signal, async () => {
        await run({ kind: 'tick' });
        await lookAt(listPaths);
      });
      const looking = repeat(LEDGER_LOOK_MS, signal, () => lookAt(pool.openPaths));
      loops = [...serving, lookAt(listPaths), looking, ticking];
    },
    wake: (path) => guarded(() => hint(path)),
    pause: async () => stop.abort(),
    close: async () => void (await Promise.all(loops)),
  };

  async function serve(step: DueStep, run: RunWork): Promise<void> {
    for (;;) {
      const path = await hints[step].next(signal);
      if (path === undefined) return;
      // The executor has logged what went wrong. The next look finds what is still due.
      const claimed = await run({ kind: 'due', path, step }, () => hints[step].hint(path)).catch(() => 0);
      hints[step].end(path);
      if (claimed > 0) guarded(() => hint(path));
    }
  }

  async function lookAt(list: () => readonly string[]): Promise<void> {
    for (const path of guarded(list) ?? []) {
      // Opening files holds this thread up, and with many tenants nothing else would get a turn.
      await yieldTurn();
      guarded(() => {
        if (hasDueJob(pool.get(path).store, clock.now())) hint(path);
      });
    }
  }

  /**
   * Hints at a file: the batch that claims memories looks for them itself, documents and questions are looked for here.
   */
  function hint(path: string): void {
    hints.encode.hint(path);
    const { store } = pool.get(path);
    for (const step of ['ingest', 'reason'] as const) {
      if (hasDueJobAt(store, step, clock.now())) hints[step].hint(path);
    }
  }

  /** Reads a file so that a failure holds up no other file. No file is opened once the source has paused. */
  function guarded<T>(work: () => T): T | undefined {
    if (signal.aborted) return undefined;
    try {
      return work();
    } catch (error) {
      logger.error({ error: serialiseError(error) }, 'look_failed');
      return undefined;
    }
  }
}

/**
 * Repeats the work, `everyMs` after its last end, until `signal` aborts. The first time comes after one second, so that
 * after a start no schedule waits for a whole tick.
 */
async function repeat(everyMs: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  for (let waitMs = LEDGER_LOOK_MS; ; waitMs = everyMs) {
    await pause(waitMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await work();
  }
}

/**
 * Keeps the files that may have work of one kind. Each hint hands its file to one taker; hints for a file that is not
 * taken yet count as one.
 * @param most takers that a file may have at once
 */
function createHints(most: number) {
  const hinted = new Set<string>();
  const takers = new Map<string, number>();
  const waiting = new Set<() => void>();
  const change = (path: string, by: 1 | -1) => {
    const count = (takers.get(path) ?? 0) + by;
    if (count === 0) takers.delete(path);
    else takers.set(path, count);
  };
  const wakeAll = () => {
    for (const wake of waiting) wake();
  };
  return {
    hint(path: string): void {
      hinted.add(path);
      wakeAll();
    },
    /** Says that a taker of a file has ended. */
    end(path: string): void {
      change(path, -1);
      if (hinted.has(path)) wakeAll();
    },
    /** Hands out files in the order of their hints, until `end` is called. @returns undefined once `signal` aborts */
    async next(signal: AbortSignal): Promise<string | undefined> {
      while (!signal.aborted) {
        for (const path of hinted) {
          if ((takers.get(path) ?? 0) >= most) continue;
          hinted.delete(path);
          change(path, 1);
          return path;
        }
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake);
            signal.removeEventListener('abort', wake);
            resolve();
          };
          waiting.add(wake);
          signal.addEventListener('abort', wake);
        });
      }
      return undefined;
    },
  };
}
