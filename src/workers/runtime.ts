import {
  counterPlaceOf,
  createTenantGuards,
  createTenantShares,
  followPlacements,
  openControlDatabase,
  openDueTenants,
  openParts,
  openRateLimits,
  readRetrievalDefaultsOf,
} from '../engine/for-workers.ts';
import { type Config, type Logger, type Metrics, type Tracing, systemClock } from '../engine/index.ts';
import { createCallLog } from './call-log.ts';
import { createExecutor } from './executor.ts';
import type { RunWork } from './job-source.ts';
import { createLedgerSource } from './ledger-source.ts';
import { readersOf } from './readers.ts';

/**
 * A worker's executor with its own open files and providers. Without queues it also looks for due jobs in the ledgers.
 */
export interface Runtime {
  readonly run: RunWork;
  /** Hints that a tenant's file has new jobs. It does nothing if the jobs come from queues. */
  wake(path: string): void;
  /** Takes no more jobs, finishes or hands back those that run, and closes everything. */
  drain(): Promise<void>;
}

/** Settings of a runtime that reads the ledgers itself. */
export interface ReadsLedgers {
  /**
   * True if this is the only worker of the data folder. Jobs that are claimed when it starts then belong to a worker
   * that died, so all of them become due again. If it is false, only claimed jobs whose lease has ended do.
   */
  readonly alone: boolean;
}

export interface RuntimeOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Tracing of the jobs that the runtime runs. The runtime closes it in `drain`. */
  readonly tracing?: Tracing | null | undefined;
  /**
   * How the runtime reads the ledgers (job tables); null if it does not, because queues hand it the work through `run`.
   */
  readonly ledgers: ReadsLedgers | null;
}

/**
 * Opens the files and providers of a worker's runtime. If `ledgers` is not null, the runtime makes the jobs of workers
 * that died due again and then looks for due jobs in the ledgers by itself. If it is null, it only does the work with
 * which `run` is called. `drain` closes everything.
 * @throws EngineError `unavailable` if the control database cannot be reached
 */
export function openRuntime(options: RuntimeOptions): Runtime {
  const control = openControlDatabase(options.config, systemClock);
  try {
    return openOn(control, options);
  } catch (error) {
    control.close();
    throw error;
  }
}

function openOn(
  control: ReturnType<typeof openControlDatabase>,
  { config, logger, metrics, tracing = null, ledgers }: RuntimeOptions,
): Runtime {
  const clock = systemClock;
  const callLog = createCallLog();
  const { budget, ...parts } = openParts({ config, clock, metrics, tracing, role: 'worker', onCall: callLog.note });
  const { pool, listPaths } = followPlacements({ config, control, pool: parts.pool, logger });
  const guardOf = createTenantGuards({ config, clock, metrics, control });
  const rates = openRateLimits(counterPlaceOf(config, config.paths.rates), clock);
  const shareOf = createTenantShares(control, rates);
  const common = { config, clock, logger, listPaths };
  const defaultsOf = (file: string) => readRetrievalDefaultsOf(control, file);
  const own = { guardOf, shareOf, defaultsOf, callLog };
  const dueTenants = openDueTenants(config, parts.identity);
  const executor = createExecutor({ ...common, ...parts, pool, metrics, tracing, dueTenants, ...own });
  const source = ledgers && createLedgerSource({ ...common, pool, readers: readersOf(config) });
  const started = ledgers && executor.recover({ everyOwner: ledgers.alone }).then(() => source?.start(executor.run));
  return {
    run: executor.run,
    wake: (path) => source?.wake(path),
    async drain() {
      await source?.pause();
      await executor.drain();
      await started;
      await source?.close();
      await Promise.all([parts.documentParser?.close(), parts.pageFetcher?.close()]);
      dueTenants?.close();
      budget.close();
      rates.close();
      control.close();
      await tracing?.close();
    },
  };
}
