import { v7 as uuidv7 } from 'uuid';
import {
  type BatchContext,
  type BatchResult,
  type DueTenants,
  type StepContext,
  type TenantPool,
  appendEmbedLog,
  hasDueSuspect,
  languageModelOf,
  postponeSuspects,
  runBatch,
  runNamed,
  runNamedQuestions,
  runNextDocument,
  runNextQuestions,
} from '../engine/for-workers.ts';
import {
  EngineError,
  isStillUnreachable,
  type Logger,
  type RetrievalOptions,
  serialiseError,
} from '../engine/index.ts';
import type { CallLog } from './call-log.ts';
import { createGate } from './gate.ts';
import { DUE_STEPS, type DueWork, type NamedWork, type RunWork } from './job-source.ts';
import { createProviderPauses } from './provider-pauses.ts';
import { createRuns } from './runs.ts';
import { startSweeps, type Sweeps } from './sweeps.ts';

/**
 * Runs jobs on tenants' files, with files and providers of its own. Steps compute on the calling thread, so an executor
 * should have a thread to itself.
 */
export interface Executor {
  readonly run: RunWork;
  /**
   * Makes claimed jobs of all files due again, as `Sweeps.recover` does. Call it before any work: with `everyOwner` it
   * releases every claim, including those of this executor.
   */
  readonly recover: Sweeps['recover'];
  /**
   * Refuses further work with `unavailable` (a tick does nothing), waits until running work is finished or handed back,
   * and closes the files.
   */
  drain(): Promise<void>;
}

export interface ExecutorOptions extends Omit<StepContext, 'open' | 'newId' | 'guard'> {
  /**
   * Reads the tenant's default retrieval options by the path of its file. If it is undefined, tenants have no defaults
   * of their own.
   */
  readonly defaultsOf?: (path: string) => RetrievalOptions;
  /** Returns the privacy guard of the tenant whose file has this path. If it is undefined, texts are not screened. */
  readonly guardOf?: (path: string) => StepContext['guard'];
  /**
   * Returns the object that says whether and how long the tenant's documents have to wait, by the path of its file: for
   * parser time and page fetches of the last minute, for page fetches at the same time, and for its quotas. Without
   * this function nothing is limited.
   */
  readonly shareOf?: (path: string) => StepContext['share'];
  readonly logger: Logger;
  readonly pool: TenantPool;
  /**
   * Finds the tenants that need upkeep, where they are in PostgreSQL; null or undefined if all tenants are looked at.
   * The caller closes it.
   */
  readonly dueTenants?: DueTenants | null | undefined;
  /**
   * Lists the paths of all tenants with data, by which `pool` opens them; in PostgreSQL, the paths that their files
   * would have. A tenant that moves to another database just now is left out. It is called at each tick (periodic
   * upkeep), and when the jobs of dead workers are taken back.
   */
  readonly listPaths: () => readonly string[];
  /**
   * The provider calls of the runs. When a run ends, those of its tenant are logged in the tenant's file. If it is
   * undefined, no calls are logged.
   */
  readonly callLog?: CallLog | undefined;
  /** Time after which a run (the work on one batch of jobs) that has not ended is given up (ms); by default an hour. */
  readonly runMostMs?: number | undefined;
}

/**
 * Longest time by which suspect jobs (of a crash or a failed batch) are postponed (ms). If a due time lay further
 * ahead, the ledger could take it for a sign that the clock was set back.
 */
const MAX_POSTPONED_MS = 60_000;
/** Number of jobs at the steps `encode` and `link` that are claimed at once if no embedder is set. */
const UNEMBEDDED_BATCH = 64;
/**
 * Greatest number of jobs at the steps `encode` and `link` that are claimed at once, even if the provider takes more
 * texts: other tenants wait until the batch is done.
 */
const MAX_BATCH = 256;

export function createExecutor(options: ExecutorOptions): Executor {
  const { logger, pool } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const gate = createGate();
  const runs = createRuns({ logger, mostMs: options.runMostMs, takeBack: (...run) => sweeps.takeBack(...run) });
  const providers = createProviderPauses(signal);
  const sweeps = startSweeps({ ...options, signal, runs });

  return {
    recover: sweeps.recover,
    async run(work, onClaimed = () => {}) {
      if (work.kind === 'tick') {
        await sweeps.tick();
        return 0;
      }
      try {
        return await admit(work, onClaimed);
      } catch (error) {
        if (!signal.aborted && !isStillUnreachable(error))
          logger.error({ step: work.step, error: serialiseError(error) }, 'work_failed');
        throw error;
      }
    },
    async drain() {
      stop.abort();
      // The gate lets work in one by one: once this last piece is alone, all earlier work has ended.
      await gate.alone(async () => {});
      await sweeps.ended();
      pool.close();
    },
  };

  /**
   * Waits while the provider is paused, so that no job is claimed meanwhile, and then runs the work beside other work,
   * or alone if it is for suspect jobs (of a crash or a failed batch). If suspect jobs cannot run alone at once, those
   * that a queue named are postponed; those that are due are left in the ledger, and the work takes the others.
   * @returns the number of claimed jobs
   * @throws EngineError `unavailable` if the worker is stopping
   */
  async function admit(work: DueWork | NamedWork, onClaimed: () => void): Promise<number> {
    await providers.untilReady(work.step);
    refuseWhileStopping();
    const waitMs = gate.msUntilAlone();
    const alone = work.kind === 'named' ? work.alone : waitMs === 0 && hasSuspects(options, work);
    if (work.kind === 'named' && alone && waitMs > 0) return postpone(options, work, waitMs);
    return gate[alone ? 'alone' : 'together'](() => claimAndRun(work, { alone, onClaimed }));
  }

  function refuseWhileStopping(): void {
    if (signal.aborted) throw new EngineError('unavailable', 'the worker is stopping');
  }

  async function claimAndRun(work: DueWork | NamedWork, how: HowToRun): Promise<number> {
    refuseWhileStopping();
    const { path, step } = work;
    const provider = providers.healthOf(step);
    const { claimed, providerPauseMs } = await withCallsLogged(options, path, () =>
      runs.run(path, (owner, givenUp) => {
        const context = { ...contextOf(options, path), owner, provider };
        return runWork(context, work, { ...how, signal: AbortSignal.any([signal, givenUp]) });
      }),
    );
    if (providerPauseMs !== null) providers.pause(step, providerPauseMs);
    return claimed;
  }
}

/** Makes the context in which steps run on the file at `path`. */
function contextOf(
  { guardOf, shareOf, defaultsOf, ...options }: ExecutorOptions,
  path: string,
): Omit<BatchContext, 'owner'> {
  const open = () => options.pool.get(path);
  const defaults = defaultsOf && (() => defaultsOf(path));
  const languageModel = languageModelOf(path, options.languageModel);
  return { ...options, languageModel, open, guard: guardOf?.(path), share: shareOf?.(path), defaults, newId: uuidv7 };
}

type Files = Pick<ExecutorOptions, 'pool' | 'clock'>;

function hasSuspects({ pool, clock }: Files, { path, step }: DueWork): boolean {
  const { store } = pool.get(path);
  return DUE_STEPS[step].some((covered) => hasDueSuspect(store, covered, clock.now()));
}

/**
 * Makes suspect jobs (of a crash or a failed batch) that a queue named due later, if they cannot run alone at once.
 * Waiting here would block the queue's slot for other work.
 * @returns 0, since no job was claimed
 */
function postpone({ pool, clock }: Files, { path, jobNos }: NamedWork, ms: number): number {
  const { store } = pool.get(path);
  store.write(() => postponeSuspects(store, jobNos, clock.now() + Math.min(MAX_POSTPONED_MS, ms)));
  return 0;
}

/**
 * Does the work of a run on the file at `path`. When it has ended, its provider calls are logged in this file. If they
 * cannot be logged, the work counts even so, and they are logged after a later run.
 */
async function withCallsLogged<T>(
  { pool, callLog, logger }: Pick<ExecutorOptions, 'pool' | 'callLog' | 'logger'>,
  path: string,
  work: () => Promise<T>,
): Promise<T> {
  if (callLog === undefined) return work();
  try {
    return await callLog.during(path, work);
  } finally {
    try {
      callLog.flush(path, (calls) => {
        const { store } = pool.get(path);
        store.write(() => {
          for (const call of calls) appendEmbedLog(store, call);
        });
      });
    } catch (error) {
      logger.error({ error: serialiseError(error) }, 'calls_not_logged');
    }
  }
}

interface HowToRun {
  readonly alone: boolean;
  readonly onClaimed: () => void;
}

/**
 * Claims jobs, those that are named or those that are due, and runs their step.
 * @returns the number of claimed jobs, and how long to leave the provider alone (ms; null if it need not be)
 */
async function runWork(
  context: BatchContext,
  work: DueWork | NamedWork,
  { alone, onClaimed, signal }: HowToRun & { readonly signal: AbortSignal },
): Promise<BatchResult> {
  if (work.kind === 'named') {
    const { step, ...jobs } = work;
    return step === 'reason' ? runNamedQuestions(context, jobs, signal) : runNamed(context, { step, ...jobs }, signal);
  }
  switch (work.step) {
    case 'encode':
      return runBatch(context, batchSizeOf(context), signal, { suspects: alone });
    case 'reason':
      return runNextQuestions(context, { alone }, signal);
    case 'ingest': {
      const wasClaimed = await runNextDocument(context, { alone, onClaimed }, signal);
      return { claimed: Number(wasClaimed), providerPauseMs: null };
    }
  }
}

/**
 * Returns how many jobs to claim so that the embedder is busy: the texts of one call for an embedder that computes
 * here, of OM_EMBED_CONCURRENCY calls for a provider, and 256 at most. Without an embedder it is 64.
 */
function batchSizeOf({ embedder, config }: BatchContext): number {
  if (embedder === null) return UNEMBEDDED_BATCH;
  return Math.min(MAX_BATCH, embedder.maxBatchTexts * (embedder.cacheable ? config.OM_EMBED_CONCURRENCY : 1));
}
