import { v7 as uuidv7 } from 'uuid';
import {
  type BatchContext,
  type BatchResult,
  type StepContext,
  type TenantPool,
  appendEmbedLog,
  hasDueSuspect,
  postponeSuspects,
  runBatch,
  runNamed,
  runNamedQuestions,
  runNextDocument,
  runNextQuestions,
} from '../engine/for-workers.ts';
import {
  type EmbedLogEntry,
  EngineError,
  type Logger,
  type RetrievalOptions,
  serialiseError,
} from '../engine/index.ts';
import { createGate } from './gate.ts';
import { DUE_STEPS, type DueWork, type NamedWork, type RunWork } from './job-source.ts';
import { createProviderPauses } from './provider-pauses.ts';
import { createRuns } from './runs.ts';
import { startSweeps, type Sweeps } from './sweeps.ts';

/**
 * Does the work that a source hands out, on files and providers of its own. CPU-bound steps run right here, which is
 * why an executor belongs on a thread of its own.
 */
export interface Executor {
  readonly run: RunWork;
  /**
   * Takes jobs back in all files. It is called before any work, as with `everyOwner` it takes back whatever is claimed.
   */
  readonly recover: Sweeps['recover'];
  /**
   * Finishes or hands back what is under way and closes the files. Work that comes later is refused with `unavailable`.
   */
  drain(): Promise<void>;
}

export interface ExecutorOptions extends Omit<StepContext, 'open' | 'newId' | 'guard'> {
  /** Reads the defaults for queries of the tenant whose file is at a path; left out where there are none. */
  readonly defaultsOf?: (path: string) => RetrievalOptions;
  /** Returns what screens the texts of the tenant whose file is at a path; left out, nothing is screened. */
  readonly guardOf?: (path: string) => StepContext['guard'];
  /** Returns the share in parsers and fetches of the tenant whose file is at a path; left out, nothing is limited. */
  readonly shareOf?: (path: string) => StepContext['share'];
  readonly logger: Logger;
  readonly pool: TenantPool;
  /** Lists the file of every tenant that has one; called at each tick. */
  readonly listPaths: () => readonly string[];
  /**
   * Returns the calls to providers since it was last called, each once. They are written to the file that was worked
   * on.
   */
  readonly takeCalls?: (() => readonly EmbedLogEntry[]) | undefined;
  /** Time after which a run that has not ended is given up (ms); an hour by default. */
  readonly runMostMs?: number | undefined;
}

/**
 * Longest time by which a suspect is postponed (ms): a due time further ahead could not be told from a clock that was
 * set back.
 */
const MAX_POSTPONED_MS = 60_000;
/** Most jobs claimed at once where nothing is embedded. */
const UNEMBEDDED_BATCH = 64;
/** Most jobs claimed at once, however many texts the provider takes: one tenant's batch holds up the next tenant's. */
const MAX_BATCH = 256;

export function createExecutor(options: ExecutorOptions): Executor {
  const { logger, pool } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const gate = createGate();
  const runs = createRuns({ logger, mostMs: options.runMostMs });
  const providers = createProviderPauses(signal);
  const sweeps = startSweeps({ ...options, signal, ownersOf: runs.ownersOf });

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
        if (!signal.aborted) logger.error({ step: work.step, error: serialiseError(error) }, 'work_failed');
        throw error;
      }
    },
    async drain() {
      stop.abort();
      // The gate lets in one after the other: when the last to come is alone, the others have left.
      await gate.alone(async () => {});
      await sweeps.ended();
      pool.close();
    },
  };

  /**
   * While the provider is down or asks for patience nothing is claimed; the first work afterwards probes it. Suspects
   * run alone.
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
    try {
      const { claimed, providerPauseMs } = await runs.run(path, (owner) =>
        runWork({ ...contextOf(options, path), owner, provider }, work, { ...how, signal }),
      );
      if (providerPauseMs !== null) providers.pause(step, providerPauseMs);
      return claimed;
    } finally {
      logCalls(options, path);
    }
  }
}

/** Makes the context of the steps on one file. */
function contextOf(
  { guardOf, shareOf, defaultsOf, ...options }: ExecutorOptions,
  path: string,
): Omit<BatchContext, 'owner'> {
  const open = () => options.pool.get(path);
  const defaults = defaultsOf && (() => defaultsOf(path));
  return { ...options, open, guard: guardOf?.(path), share: shareOf?.(path), defaults, newId: uuidv7 };
}

type Files = Pick<ExecutorOptions, 'pool' | 'clock'>;

function hasSuspects({ pool, clock }: Files, { path, step }: DueWork): boolean {
  const { store } = pool.get(path);
  return DUE_STEPS[step].some((covered) => hasDueSuspect(store, covered, clock.now()));
}

/** Makes suspects due later, rather than keep their work waiting here, where it would take a place from others. */
function postpone({ pool, clock }: Files, { path, jobNos }: NamedWork, ms: number): number {
  const { store } = pool.get(path);
  store.write(() => postponeSuspects(store, jobNos, clock.now() + Math.min(MAX_POSTPONED_MS, ms)));
  return 0;
}

function logCalls({ pool, takeCalls }: Pick<ExecutorOptions, 'pool' | 'takeCalls'>, path: string): void {
  const calls = takeCalls?.() ?? [];
  if (calls.length === 0) return;
  const { store } = pool.get(path);
  store.write(() => {
    for (const call of calls) appendEmbedLog(store, call);
  });
}

interface HowToRun {
  readonly alone: boolean;
  readonly onClaimed: () => void;
}

/** Claims the jobs of a piece of work and takes them through their step. */
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
 * Returns the number of jobs that keep an embedder busy: those of one call, or of all calls that a provider takes at
 * once.
 */
function batchSizeOf({ embedder, config }: BatchContext): number {
  if (embedder === null) return UNEMBEDDED_BATCH;
  return Math.min(MAX_BATCH, embedder.maxBatchTexts * (embedder.cacheable ? config.OM_EMBED_CONCURRENCY : 1));
}
