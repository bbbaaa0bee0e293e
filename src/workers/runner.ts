import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../engine/config.ts';
import { serialiseError } from '../engine/errors.ts';
import type { EmbeddingGatherer } from '../engine/ingest/embedding-gatherer.ts';
import {
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  runDueSchedules,
  type MaintenanceContext,
} from '../engine/ingest/maintain.ts';
import { createProviderHealth } from '../engine/ingest/retry.ts';
import { runBatch } from '../engine/ingest/run-batch.ts';
import type { Metrics } from '../engine/metrics.ts';
import type { Clock, Embedder, LanguageModel, Logger } from '../engine/ports.ts';
import { hasDueJob, renewLeases } from '../engine/store/jobs.ts';
import type { TenantPool } from '../engine/store/tenant-pool.ts';

export interface RunnerOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  readonly languageModel: LanguageModel | null;
  readonly pool: TenantPool;
  /** Every tenant's file; asked for at each sweep. */
  readonly listPaths: () => readonly string[];
  /** True where no other process can hold a lease: whatever is leased at the start belongs to the dead. */
  readonly alone: boolean;
  /** Runs after each batch of a file, whatever became of it. */
  readonly afterBatch: (path: string) => void;
}

/** Works off the ledgers of all tenants in one thread or process. */
export interface Runner {
  /** A hint that this file has work. */
  wake(path: string): void;
  /** Finishes the batch under way, hands back the rest, closes the files. */
  drain(): Promise<void>;
}

/** A sweep looks at the open files, and now and then at all, for hints that were lost and retries that fell due. */
const SWEEP_MS = 1_000;
const SCHEDULES_EVERY_SWEEPS = 15;

/**
 * One loop, one batch at a time: tenants with work in turn, so that a bulk import of one holds up another by a batch at most. CPU-bound
 * steps run right here, which is why this belongs on a thread or in a process of its own.
 */
export function startRunner(options: RunnerOptions): Runner {
  const { config, clock, logger, pool } = options;
  // One a batch, so that only the batch under way is renewed: jobs of one that ended without a word fall due like a dead worker's.
  let owner = ''; // '' between batches
  const stop = new AbortController();
  const hinted = new Set<string>();
  let wakeUp: () => void = () => {};
  const provider = createProviderHealth();
  let providerBlockedUntil = 0;

  const batchSize =
    options.embedder === null
      ? 64
      : Math.min(256, options.embedder.maxBatchTexts * (options.embedder.cacheable ? config.OM_EMBED_CONCURRENCY : 1));
  const maintenanceOf = (path: string): MaintenanceContext => ({ ...options, open: () => pool.get(path) });

  const workOn = async (path: string): Promise<boolean> => {
    owner = uuidv7();
    const context = { ...options, open: () => pool.get(path), owner, provider, newId: uuidv7 };
    const { claimed, providerPauseMs } = await runBatch(context, batchSize, stop.signal).finally(() => {
      owner = '';
      options.afterBatch(path);
    });
    // The provider failed, or the disk is full: nothing is claimed for a while, then one batch probes it.
    if (providerPauseMs !== null) providerBlockedUntil = performance.now() + providerPauseMs;
    return claimed > 0;
  };

  const loop = async () => {
    for (const path of (await guarded('recover_failed', options.listPaths)) ?? []) {
      await guarded('recover_failed', () => recoverJobs(maintenanceOf(path), { everyOwner: options.alone }));
      hinted.add(path);
    }
    while (!stop.signal.aborted) {
      const blockedMs = providerBlockedUntil - performance.now();
      if (hinted.size === 0 || blockedMs > 0) {
        let timer: NodeJS.Timeout | undefined;
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
          if (blockedMs > 0) timer = setTimeout(resolve, blockedMs);
          if (stop.signal.aborted) resolve();
        });
        clearTimeout(timer);
        if (providerBlockedUntil > performance.now()) continue;
      }
      for (const path of [...hinted]) {
        if (stop.signal.aborted || providerBlockedUntil > performance.now()) break;
        hinted.delete(path);
        const busy = await guarded('batch_failed', () => workOn(path));
        if (busy) hinted.add(path);
      }
    }
  };

  const sweeps = async () => {
    for (let sweep = 0; !stop.signal.aborted; sweep++) {
      await pause(SWEEP_MS, undefined, { signal: stop.signal }).catch(() => {});
      if (stop.signal.aborted) return;
      const all = sweep % SCHEDULES_EVERY_SWEEPS === 0;
      const paths = all ? await guarded('sweep_failed', options.listPaths) : undefined;
      for (const path of paths ?? pool.openPaths()) {
        const context = maintenanceOf(path);
        // First and apart: on a disk that the log has filled every write fails, and only this can make room.
        await guarded('checkpoint_failed', () => checkpoint(context));
        await guarded('sweep_failed', async () => {
          const { store } = context.open();
          store.write(() => renewLeases(store, owner, clock.now() + config.OM_LEASE_MS));
          recoverJobs(context, { everyOwner: false });
          await cleanAfterErase(context);
          if (all) await runDueSchedules(context);
          if (hasDueWork(path)) hint(path);
        });
      }
    }
  };

  const hasDueWork = (path: string): boolean => {
    return hasDueJob(pool.get(path).store, clock.now());
  };

  const hint = (path: string) => {
    hinted.add(path);
    wakeUp();
  };

  const guarded = async <T>(event: string, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!stop.signal.aborted) logger.error({ error: serialiseError(error) }, event);
      return undefined;
    }
  };

  const running = Promise.all([loop(), sweeps()]);
  return {
    wake: hint,
    async drain() {
      stop.abort();
      wakeUp();
      await running;
      pool.close();
    },
  };
}
