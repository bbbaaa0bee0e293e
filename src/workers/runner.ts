import { setImmediate as breathe, setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../engine/config.ts';
import { serialiseError } from '../engine/errors.ts';
import type { EmbeddingGatherer } from '../engine/providers/embedding-gatherer.ts';
import type { StepContext } from '../engine/steps/step-context.ts';
import {
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  runDueSchedules,
  type MaintenanceContext,
} from '../engine/upkeep/maintain.ts';
import { createProviderHealth } from '../engine/providers/retry.ts';
import { runBatch } from '../engine/batches/run-batch.ts';
import type { BatchContext } from '../engine/batches/batch-context.ts';
import type { QueuedStep } from '../engine/jobs.ts';
import type { Metrics } from '../engine/metrics.ts';
import { runNextQuestions } from '../engine/batches/reason.ts';
import { runNextDocument } from '../engine/batches/run-document.ts';
import type { Clock, DocumentParser, Embedder, LanguageModel, Logger, PageFetcher } from '../engine/ports.ts';
import { hasDueJob, hasDueJobAt, hasDueSuspect, renewLeases } from '../engine/store/jobs.ts';
import type { TenantPool } from '../engine/tenant-file/tenant-pool.ts';
import type { Tracing } from '../engine/tracing.ts';
import { createGate } from './gate.ts';
import { readersOf } from './readers.ts';
import { createRuns } from './runs.ts';

export interface RunnerOptions {
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  readonly embedder: Embedder | null;
  readonly gatherer: EmbeddingGatherer | null;
  readonly sourceOf?: StepContext['sourceOf'];
  readonly languageModel: LanguageModel | null;
  readonly documentParser: DocumentParser | null;
  readonly pageFetcher: PageFetcher | null;
  readonly pool: TenantPool;
  /** Every tenant's file that exists; asked for at each sweep. */
  readonly listPaths: () => readonly string[];
  /** True where no other process can hold a lease: whatever is leased at the start belongs to the dead. */
  readonly alone: boolean;
  /** Runs after each batch of a file, whatever became of it. */
  readonly afterBatch: (path: string) => void;
  /** After how long a batch or a document is given up (ms). */
  readonly runMostMs?: number | undefined;
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
 * One loop for memories, a batch at a time: tenants with work in turn, so that a bulk import of one holds up another by a batch at most.
 * CPU-bound steps run right here, which is why this belongs on a thread or in a process of its own. Documents are read by children, a
 * loop for each, and only what they found is written here. One more loop asks the language model.
 */
export function startRunner(options: RunnerOptions): Runner {
  const { config, clock, logger, pool } = options;
  /** One a batch and one a document. */
  const runs = createRuns({ logger, mostMs: options.runMostMs });
  const gate = createGate();
  const stop = new AbortController();
  const hinted = new Set<string>();
  let wakeUp: () => void = () => {};
  const documents = createHints();
  const questions = createHints();
  const provider = createProviderHealth();
  const languageModel = createProviderHealth();
  let providerBlockedUntil = 0;

  const batchSize =
    options.embedder === null
      ? 64
      : Math.min(256, options.embedder.maxBatchTexts * (options.embedder.cacheable ? config.OM_EMBED_CONCURRENCY : 1));
  const maintenanceOf = (path: string): MaintenanceContext => ({
    ...options,
    signal: stop.signal,
    open: () => pool.get(path),
  });

  const asOwner = <T>(path: string, work: (context: BatchContext) => Promise<T>): Promise<T> =>
    runs.run(path, (owner) => work({ ...options, open: () => pool.get(path), owner, provider, newId: uuidv7 }));

  /** Whether suspects are due, and it is their turn. */
  const isForSuspects = (path: string, steps: readonly QueuedStep[]): boolean =>
    gate.msUntilAlone() === 0 && steps.some((step) => hasDueSuspect(pool.get(path).store, step, clock.now()));

  const workOn = async (path: string): Promise<boolean> => {
    const isAlone = isForSuspects(path, ['encode', 'link']);
    const run = () => asOwner(path, (context) => runBatch(context, batchSize, stop.signal, { suspects: isAlone }));
    const { claimed, providerPauseMs } = await (isAlone ? gate.alone(run) : gate.together(run)).finally(() =>
      options.afterBatch(path),
    );
    // The provider failed, or the disk is full: nothing is claimed for a while, then one batch probes it.
    if (providerPauseMs !== null) providerBlockedUntil = performance.now() + providerPauseMs;
    return claimed > 0;
  };

  /** Before anything is claimed here, as it may take back whatever is claimed. */
  const recoverAll = async () => {
    for (const path of (await guarded('recover_failed', options.listPaths)) ?? []) {
      await breathe();
      if (stop.signal.aborted) return;
      await guarded('recover_failed', () => recoverJobs(maintenanceOf(path), { everyOwner: options.alone }));
      hinted.add(path);
    }
  };

  const loop = async () => {
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

  const readDocuments = async () => {
    while (!stop.signal.aborted) {
      const path = await documents.next(stop.signal);
      if (path === undefined) return;
      const isAlone = isForSuspects(path, ['ingest']);
      const onClaimed = () => documents.hint(path);
      const run = () =>
        asOwner(path, (context) => runNextDocument(context, { alone: isAlone, onClaimed }, stop.signal));
      const wasOne = await guarded('document_failed', () => (isAlone ? gate.alone(run) : gate.together(run)));
      if (wasOne) hint(path);
    }
  };

  /** Beside everything else, as a language model takes seconds to answer and nobody waits for what it says. */
  const askQuestions = async () => {
    while (!stop.signal.aborted) {
      const path = await questions.next(stop.signal);
      if (path === undefined) return;
      const isAlone = isForSuspects(path, ['reason']);
      const run = () =>
        asOwner(path, (context) =>
          runNextQuestions({ ...context, provider: languageModel }, { alone: isAlone }, stop.signal),
        );
      const result = await guarded('questions_failed', () =>
        (isAlone ? gate.alone(run) : gate.together(run)).finally(() => options.afterBatch(path)),
      );
      if (result === undefined || result.claimed === 0) continue;
      hint(path);
      if (result.providerPauseMs !== null) {
        await pause(result.providerPauseMs, undefined, { signal: stop.signal }).catch(() => {});
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
        // Opening files holds this thread up, and with many tenants nobody would hear of it for too long.
        await breathe();
        const context = maintenanceOf(path);
        // First and apart: on a disk that the log has filled every write fails, and only this can make room.
        await guarded('checkpoint_failed', () => checkpoint(context));
        await guarded('sweep_failed', async () => {
          const { store } = context.open();
          store.write(() => {
            for (const owner of runs.ownersOf(path)) renewLeases(store, owner, clock.now() + config.OM_LEASE_MS);
          });
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
    const { store } = pool.get(path);
    if (hasDueJobAt(store, 'ingest', clock.now())) documents.hint(path);
    if (hasDueJobAt(store, 'reason', clock.now())) questions.hint(path);
  };

  const guarded = async <T>(event: string, work: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!stop.signal.aborted) logger.error({ error: serialiseError(error) }, event);
      return undefined;
    }
  };

  const work = () => {
    const readers = Array.from({ length: options.documentParser === null ? 0 : readersOf(config) }, readDocuments);
    return Promise.all([loop(), sweeps(), askQuestions(), ...readers]);
  };
  const running = recoverAll().then(work);
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

/** Files that may have work of a kind, each handed to one at a time and again while it may have more. */
function createHints() {
  const hinted = new Set<string>();
  const waiting = new Set<() => void>();
  return {
    hint(path: string): void {
      hinted.add(path);
      for (const wake of waiting) wake();
    },
    /** Tenants in turn. @returns undefined once `signal` aborts */
    async next(signal: AbortSignal): Promise<string | undefined> {
      while (!signal.aborted) {
        for (const path of hinted) {
          hinted.delete(path);
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
