import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../engine/config.ts';
import { openControlDatabase } from '../engine/control/open-control-database.ts';
import { EngineError, serialiseError } from '../engine/errors.ts';
import {
  checkpoint,
  cleanAfterErase,
  recoverJobs,
  runSchedule,
  type MaintenanceContext,
} from '../engine/ingest/maintain.ts';
import { createProviderHealth } from '../engine/ingest/retry.ts';
import { runNamed } from '../engine/ingest/run-batch.ts';
import type { QueuedStep, ScheduleName, StepPayload } from '../engine/jobs.ts';
import type { Metrics } from '../engine/metrics.ts';
import { openParts } from '../engine/open-engine.ts';
import { systemClock, type Logger } from '../engine/ports.ts';
import { appendEmbedLog, type EmbedLogEntry } from '../engine/store/embeddings.ts';
import { renewLeases } from '../engine/store/jobs.ts';
import { createGate } from './gate.ts';

/** Does what the queues ask for, with files and an embedder of its own. The ledger says how much of it is still owed. */
export interface Executor {
  /** @returns how many of the jobs were still owed @throws EngineError `unavailable` while it stops: nothing was claimed */
  runStep(step: QueuedStep, payload: StepPayload): Promise<number>;
  /** Runs a schedule for every tenant. */
  runSchedule(schedule: ScheduleName): Promise<void>;
  /** Finishes or hands back what is under way, closes the files. */
  drain(): Promise<void>;
}

export interface ExecutorOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Links what it has encoded instead of handing it back for the link's own queue. */
  readonly linksAtOnce?: boolean | undefined;
}

/** Leases are renewed and lapsed ones taken back so often. */
const SWEEP_MS = 1_000;

export function createExecutor({ config, logger, metrics, linksAtOnce = false }: ExecutorOptions): Executor {
  const clock = systemClock;
  const control = openControlDatabase(config, clock);
  const calls: EmbedLogEntry[] = [];
  const { embedder, gatherer, pool, languageModel, budget } = openParts({
    config,
    clock,
    metrics,
    role: 'worker',
    onCall: (entry) => void calls.push(entry),
  });
  const stop = new AbortController();
  const gate = createGate();
  const provider = createProviderHealth();
  /** Of each run under way: its owner's name and its file. */
  const underWay = new Map<string, string>();
  let providerBlockedUntil = 0;
  const maintenanceOf = (path: string): MaintenanceContext => ({
    config,
    clock,
    metrics,
    logger,
    open: () => pool.get(path),
  });
  const sweeping = sweep();

  return {
    async runStep(step, payload) {
      const path = control.findTenantPath(payload.tenant);
      if (path === undefined) return 0; // The tenant was erased, and its ledger with it.
      if (step === 'encode') await providerIsReady();
      const work = () => runOwned(path, step, payload);
      return payload.alone ? gate.alone(work) : gate.together(work);
    },
    async runSchedule(schedule) {
      for (const { id } of control.listTenants()) {
        const path = control.findTenantPath(id);
        if (path === undefined || stop.signal.aborted) continue;
        await guarded(`${schedule}_failed`, () => runSchedule(maintenanceOf(path), schedule));
      }
    },
    async drain() {
      stop.abort();
      // Whoever comes last finds everybody gone.
      await gate.alone(async () => {});
      await sweeping;
      pool.close();
      budget?.close();
      control.close();
    },
  };

  async function runOwned(path: string, step: QueuedStep, { seqs, alone }: StepPayload): Promise<number> {
    if (stop.signal.aborted) throw new EngineError('unavailable', 'the worker is stopping');
    const owner = uuidv7();
    underWay.set(owner, path);
    const context = {
      ...{ config, clock, embedder, gatherer, languageModel, metrics, logger, owner, provider, newId: uuidv7 },
      open: () => pool.get(path),
    };
    try {
      const { claimed, providerPauseMs } = await runNamed(context, { step, seqs, alone, linksAtOnce }, stop.signal);
      if (providerPauseMs !== null) providerBlockedUntil = performance.now() + providerPauseMs;
      return claimed;
    } finally {
      underWay.delete(owner);
      logCalls(path);
    }
  }

  /** While the provider is down or asks for patience nothing is claimed; the first to come afterwards probes it. */
  async function providerIsReady(): Promise<void> {
    for (;;) {
      const ms = providerBlockedUntil - performance.now();
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

  async function sweep(): Promise<void> {
    while (!stop.signal.aborted) {
      await pause(SWEEP_MS, undefined, { signal: stop.signal }).catch(() => {});
      for (const path of pool.openPaths()) {
        const context = maintenanceOf(path);
        await guarded('checkpoint_failed', () => checkpoint(context));
        await guarded('sweep_failed', async () => {
          const { store } = context.open();
          const owners = [...underWay].flatMap(([owner, file]) => (file === path ? [owner] : []));
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
