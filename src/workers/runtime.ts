import {
  createTenantGuards,
  createTenantShares,
  mayHoldRows,
  openControlDatabase,
  openParts,
  openRateLimits,
  readRetrievalDefaultsOf,
} from '../engine/for-workers.ts';
import {
  type Config,
  type EmbedLogEntry,
  type Logger,
  type Metrics,
  type Tracing,
  systemClock,
} from '../engine/index.ts';
import { createExecutor } from './executor.ts';
import type { RunWork } from './job-source.ts';
import { createLedgerSource } from './ledger-source.ts';
import { readersOf } from './readers.ts';

/**
 * An executor that opened its own files and providers, with a ledger source that feeds it where there are no queues.
 */
export interface Runtime {
  readonly run: RunWork;
  /** Tells the ledger source of new work in a tenant's file; without a ledger source it does nothing. */
  wake(path: string): void;
  /** Takes no more work, finishes or hands back what is under way, and closes everything. */
  drain(): Promise<void>;
}

/** Settings of a runtime that reads the ledgers itself. */
export interface ReadsLedgers {
  /**
   * True where this is the only worker of the data folder. Whatever is claimed when it starts was claimed by a worker
   * that died, so all of it is taken back.
   */
  readonly alone: boolean;
}

/** What a runtime of a worker is made of. */
export interface RuntimeOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Tracing of the runtime's work, which is closed with the runtime. */
  readonly tracing?: Tracing | null | undefined;
  /** Settings for reading the ledgers; null where work comes from outside, through `run`. */
  readonly ledgers: ReadsLedgers | null;
}

/**
 * Opens the files and providers of a worker's runtime. If `options.ledgers` is given, the runtime takes back the jobs
 * of workers that died and then looks for work in the ledgers by itself. If it is null, it only does the work with
 * which `run` is called. `drain` closes everything.
 */
export function openRuntime({ config, logger, metrics, tracing = null, ledgers }: RuntimeOptions): Runtime {
  const clock = systemClock;
  const control = openControlDatabase(config, clock);
  const calls: EmbedLogEntry[] = [];
  const onCall = (entry: EmbedLogEntry) => void calls.push(entry);
  const { budget, ...parts } = openParts({ config, clock, metrics, tracing, role: 'worker', onCall });
  // A tenant that was never used has no file, and gets none by being looked at.
  const listPaths = () =>
    control
      .listTenants()
      .flatMap(({ id }) => control.findTenantPath(id) ?? [])
      .filter((file) => mayHoldRows(config, file));
  const guardOf = createTenantGuards({ config, clock, metrics, control });
  const rates = openRateLimits(config.paths.rates, clock);
  const shareOf = createTenantShares(control, rates);
  const common = { config, clock, logger, listPaths };
  const takeCalls = () => calls.splice(0);
  const defaultsOf = (file: string) => readRetrievalDefaultsOf(control, file);
  const own = { guardOf, shareOf, defaultsOf, takeCalls };
  const executor = createExecutor({ ...common, ...parts, metrics, tracing, ...own });
  const source = ledgers && createLedgerSource({ ...common, pool: parts.pool, readers: readersOf(config) });
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
      budget.close();
      rates.close();
      control.close();
      await tracing?.close();
    },
  };
}
