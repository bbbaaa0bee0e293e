import { setImmediate as yieldTurn, setTimeout as pause } from 'node:timers/promises';
import { type TenantPool, hasDueJob, hasDueJobAt } from '../engine/for-workers.ts';
import { type Clock, isStillUnreachable, type Logger, TICK, serialiseError } from '../engine/index.ts';
import type { DueStep, JobSource, RunWork } from './job-source.ts';

/**
 * A source of work that finds due jobs in the ledgers (job tables) of the tenants' files, for a worker without queues.
 * Tenants with due jobs are served in turn, one batch of jobs each.
 */
export interface LedgerSource extends JobSource {
  /**
   * Hints at new jobs in a tenant's file. If a hint is lost, the jobs are found within a second or, if the file is not
   * open, at the next tick (15 s apart).
   */
  wake(path: string): void;
}

export interface LedgerSourceOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pool: TenantPool;
  /**
   * Lists the paths of all tenants with data, by which `pool` opens them; in PostgreSQL, the paths that their files
   * would have. A tenant that moves to another database just now is left out.
   */
  readonly listPaths: () => readonly string[];
  /**
   * Greatest number of documents of one tenant that are read at once. One more document may be read at the same time if
   * it belongs to another tenant.
   */
  readonly readers: number;
}

/** Time between two checks of the open files (ms), which find jobs whose hint was lost and retries that fell due. */
const LEDGER_LOOK_MS = 1_000;

export function createLedgerSource({ clock, logger, pool, listPaths, readers }: LedgerSourceOptions): LedgerSource {
  const stop = new AbortController();
  const { signal } = stop;
  // One batch of memories at a time, since its steps compute on this thread.
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

  /** Notes that a file may have due jobs: always at `encode`, whose batch looks itself; else only if a job is due. */
  function hint(path: string): void {
    hints.encode.hint(path);
    const { store } = pool.get(path);
    for (const step of ['ingest', 'reason'] as const) {
      if (hasDueJobAt(store, step, clock.now())) hints[step].hint(path);
    }
  }

  /**
   * Returns what `work` returns; undefined if it throws. The error is logged, unless it is one of a database of which
   * an error was logged. After a pause `work` is not run.
   */
  function guarded<T>(work: () => T): T | undefined {
    if (signal.aborted) return undefined;
    try {
      return work();
    } catch (error) {
      if (!isStillUnreachable(error)) logger.error({ error: serialiseError(error) }, 'look_failed');
      return undefined;
    }
  }
}

/**
 * Runs `work` again and again until `signal` aborts, with a pause of `everyMs` between the end of one run and the next.
 * The first run comes after one second, so that schedules that are due need not wait for `everyMs` after a start.
 */
async function repeat(everyMs: number, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  for (let waitMs = LEDGER_LOOK_MS; ; waitMs = everyMs) {
    await pause(waitMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    await work();
  }
}

/**
 * Creates the list of files that may have work at one step. Each hint lets one caller of `next` take the file; several
 * hints before the file is taken count as one.
 * @param most greatest number of takers that may have the same file at once
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
    /** Notes that one taker of a file has finished with it. */
    end(path: string): void {
      change(path, -1);
      if (hinted.has(path)) wakeAll();
    },
    /**
     * Takes, among the files with fewer than `most` takers, the one whose hint is oldest; if there is none, waits for
     * one. The taker must call `end` later.
     * @returns the path of the file; undefined once `signal` aborts
     */
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
