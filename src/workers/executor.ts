import fs from 'node:fs';
import { setImmediate as breathe, setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../engine/config.ts';
import { openControlDatabase } from '../engine/control/open-control-database.ts';
import { EngineError, serialiseError } from '../engine/errors.ts';
import {
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  runDueSchedules,
  type MaintenanceContext,
} from '../engine/upkeep/maintain.ts';
import { createProviderHealth } from '../engine/providers/retry.ts';
import { runNamedQuestions } from '../engine/batches/reason.ts';
import { runNamed } from '../engine/batches/run-batch.ts';
import type { QueuedStep, StepPayload } from '../engine/jobs.ts';
import type { Metrics } from '../engine/metrics.ts';
import { openParts } from '../engine/open-engine.ts';
import { systemClock, type Logger } from '../engine/ports.ts';
import { appendEmbedLog, type EmbedLogEntry } from '../engine/store/embeddings.ts';
import { postponeSuspects, renewLeases } from '../engine/store/jobs.ts';
import type { Tracing } from '../engine/tracing.ts';
import { createGate } from './gate.ts';
import { createRuns } from './runs.ts';

/** Does what the queues ask for, with files and an embedder of its own. The ledger says how much of it is still owed. */
export interface Executor {
  /** @returns how many of the jobs were still owed @throws EngineError `unavailable` while it stops: nothing was claimed */
  runStep(step: QueuedStep, payload: StepPayload): Promise<number>;
  /** Looks after the file of every tenant, and runs the schedules that are due there. */
  maintain(): Promise<void>;
  /** Finishes or hands back what is under way, closes the files. */
  drain(): Promise<void>;
}

export interface ExecutorOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /** Links what it has encoded instead of handing it back for the link's own queue. */
  readonly linksAtOnce?: boolean | undefined;
  /** After how long a step is given up (ms). */
  readonly runMostMs?: number | undefined;
}

/** Leases are renewed and lapsed ones taken back so often. */
const SWEEP_MS = 1_000;
/** A suspect asks again after so long at most: a time further ahead could not be told from a clock that was set back. */
const POSTPONED_MOST_MS = 60_000;

export function createExecutor(options: ExecutorOptions): Executor {
  const { config, logger, metrics, tracing = null, linksAtOnce = false } = options;
  const clock = systemClock;
  const control = openControlDatabase(config, clock);
  const calls: EmbedLogEntry[] = [];
  const { embedder, gatherer, sourceOf, pool, languageModel, budget, documentParser, pageFetcher } = openParts({
    config,
    clock,
    metrics,
    tracing,
    role: 'worker',
    onCall: (entry) => void calls.push(entry),
  });
  const stop = new AbortController();
  const gate = createGate();
  const provider = createProviderHealth();
  const languageModelHealth = createProviderHealth();
  const runs = createRuns({ logger, mostMs: options.runMostMs });
  const blockedUntil = { embedding: 0, languageModel: 0 };
  const maintenanceOf = (path: string): MaintenanceContext => ({
    config,
    clock,
    metrics,
    logger,
    signal: stop.signal,
    open: () => pool.get(path),
  });
  const sweeping = sweep();
  const maintaining = new Set<Promise<void>>();

  return {
    async runStep(step, payload) {
      const path = control.findTenantPath(payload.tenant);
      if (path === undefined) return 0; // The tenant was erased, and its ledger with it.
      await providerIsReady(step);
      const work = () => runOwned(path, step, payload);
      if (!payload.alone) return gate.together(work);
      const waitMs = gate.msUntilAlone();
      return waitMs === 0 ? gate.alone(work) : postpone(path, payload, waitMs);
    },
    async maintain() {
      const round = maintainAll();
      maintaining.add(round);
      await round.finally(() => maintaining.delete(round));
    },
    async drain() {
      stop.abort();
      // Whoever comes last finds everybody gone.
      await gate.alone(async () => {});
      await Promise.allSettled([sweeping, ...maintaining]);
      await Promise.all([documentParser?.close(), pageFetcher?.close()]);
      pool.close();
      budget?.close();
      control.close();
      await tracing?.close();
    },
  };

  async function runOwned(path: string, step: QueuedStep, { seqs, alone }: StepPayload): Promise<number> {
    if (stop.signal.aborted) throw new EngineError('unavailable', 'the worker is stopping');
    const context = {
      ...{ config, clock, embedder, gatherer, sourceOf, languageModel, documentParser, pageFetcher },
      ...{ metrics, tracing, logger, provider, newId: uuidv7 },
      open: () => pool.get(path),
    };
    try {
      const { claimed, providerPauseMs } = await runs.run(path, (owner) =>
        step === 'reason'
          ? runNamedQuestions({ ...context, owner, provider: languageModelHealth }, { seqs, alone }, stop.signal)
          : runNamed({ ...context, owner }, { step, seqs, alone, linksAtOnce }, stop.signal),
      );
      if (providerPauseMs !== null) blockedUntil[providerOf(step)] = performance.now() + providerPauseMs;
      return claimed;
    } finally {
      logCalls(path);
    }
  }

  /** Rather than keep the job waiting here, where it would take a place from others. */
  function postpone(path: string, { seqs }: StepPayload, ms: number): number {
    const { store } = pool.get(path);
    store.write(() => postponeSuspects(store, seqs, clock.now() + Math.min(POSTPONED_MOST_MS, ms)));
    return 0;
  }

  /** While the provider is down or asks for patience nothing is claimed; the first to come afterwards probes it. */
  async function providerIsReady(step: QueuedStep): Promise<void> {
    if (step !== 'encode' && step !== 'reason') return;
    for (;;) {
      const ms = blockedUntil[providerOf(step)] - performance.now();
      if (ms <= 0 || stop.signal.aborted) return;
      await pause(ms, undefined, { signal: stop.signal }).catch(() => {});
    }
  }

  function logCalls(path: string): void {
    const entries = calls.splice(0);
    if (entries.length === 0) return;
    const { store } = pool.get(path);
    store.write(() => {
      for (const entry of entries) appendEmbedLog(store, entry);
    });
  }

  /** What a stop leaves is still due at the next call, in whichever process. */
  async function maintainAll(): Promise<void> {
    for (const { id } of control.listTenants()) {
      const path = control.findTenantPath(id);
      if (stop.signal.aborted) return;
      // A tenant that was never used has no file, and gets none by being looked after.
      if (path === undefined || !fs.existsSync(path)) continue;
      // Opening files holds this thread up, and with many tenants nobody would hear of it for too long.
      await breathe();
      const context = maintenanceOf(path);
      await guarded('checkpoint_failed', () => checkpoint(context));
      await guarded('maintain_failed', async () => {
        recoverJobs(context, { everyOwner: false });
        await runDueSchedules(context);
      });
    }
  }

  async function sweep(): Promise<void> {
    while (!stop.signal.aborted) {
      await pause(SWEEP_MS, undefined, { signal: stop.signal }).catch(() => {});
      for (const path of pool.openPaths()) {
        const context = maintenanceOf(path);
        await guarded('checkpoint_failed', () => checkpoint(context));
        await guarded('sweep_failed', async () => {
          const { store } = context.open();
          const owners = runs.ownersOf(path);
          if (owners.length > 0) {
            store.write(() => {
              for (const owner of owners) renewLeases(store, owner, clock.now() + config.OM_LEASE_MS);
            });
          }
          if (stop.signal.aborted) return;
          recoverJobs(context, { everyOwner: false });
          await cleanAfterErase(context);
        });
      }
    }
  }

  async function guarded(event: string, work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!stop.signal.aborted) logger.error({ error: serialiseError(error) }, event);
    }
  }
}

/** Whom a step waits for while it is down. */
function providerOf(step: QueuedStep): 'embedding' | 'languageModel' {
  return step === 'reason' ? 'languageModel' : 'embedding';
}
