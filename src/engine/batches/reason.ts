import { isEngineError } from '../errors.ts';
import { MAX_QUESTIONS } from '../jobs.ts';
import { createProviderHealth } from '../providers/provider-health.ts';
import { checkContradictions } from '../steps/check-contradictions.ts';
import { consolidate } from '../steps/consolidate.ts';
import { reflect } from '../steps/reflect.ts';
import type { StepContext } from '../steps/step-context.ts';
import { releaseJob, type Question } from '../store/jobs.ts';
import { wasDoneUnder } from '../store/job-leases.ts';
import { claimJobs, claimSuspects, claimThese } from '../store/job-claims.ts';
import type { Batch, BatchContext, BatchResult } from './batch-context.ts';
import type { NamedJobs } from './run-batch.ts';
import { recordFailures, type Failed } from './record-failures.ts';
import { tracedBatch } from './traced-batch.ts';

/** Greatest number of jobs that call the language model at the same time. */
const ASKED_AT_ONCE = 4;

/**
 * Runs one job of the step `reason`, which asks the language model a question and acts on the answer. A handler either
 * ends its job or gives it back to the ledger, or it throws and leaves the job claimed; consolidations that it made
 * before stay.
 * @returns whether the language model answered, which shows that it works
 */
type Handler = (context: StepContext, question: Question, signal?: AbortSignal) => Promise<boolean>;
const HANDLERS: Readonly<Record<Question['kind'], Handler>> = {
  contradictions: checkContradictions,
  reflection: reflect,
  consolidation: consolidate,
};

/**
 * Claims due jobs that ask the language model a question from a tenant's ledger, at most 8 (`MAX_QUESTIONS`), and runs
 * them. The failure of a question is recorded in the ledger, not thrown.
 * @param context its `provider` is the health of the language model, which may be down while the embedding provider
 *   works, and the reverse
 * @param alone true claims only suspects (jobs that were active at a crash); false leaves them out. With true the
 *   caller runs nothing else meanwhile
 */
export async function runNextQuestions(
  context: BatchContext,
  { alone }: { readonly alone: boolean },
  signal?: AbortSignal,
): Promise<BatchResult> {
  const { open, owner, config, clock } = context;
  const { store } = open();
  const options = {
    owner,
    leaseMs: config.OM_LEASE_MS,
    now: clock.now(),
    limit: MAX_QUESTIONS,
    step: 'reason',
  } as const;
  const questions = store.write(() => (alone ? claimSuspects(store, options) : claimJobs(store, options)));
  return ask(context, questions, signal);
}

/**
 * Runs the jobs that a queue named and that ask the language model a question, if they are still due in the ledger. The
 * failure of a question is recorded in the ledger, not thrown.
 * @param context its `provider` is the health of the language model, which may be down while the embedding provider
 *   works, and the reverse
 * @param jobs `alone` is true for suspects (jobs that were active at a crash): the caller runs nothing else meanwhile
 */
export async function runNamedQuestions(
  context: BatchContext,
  { jobNos, alone }: Pick<NamedJobs, 'jobNos' | 'alone'>,
  signal?: AbortSignal,
): Promise<BatchResult> {
  const { open, owner, config, clock } = context;
  const { store } = open();
  const options = { jobNos, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now(), step: 'reason' } as const;
  const questions = store.write(() => claimThese(store, options));
  return ask(context, questions, signal);
}

async function ask(
  context: BatchContext,
  questions: readonly Question[],
  signal: AbortSignal | undefined,
): Promise<BatchResult> {
  if (questions.length === 0) return { claimed: 0, providerPauseMs: null };
  const batch = { ...context, provider: context.provider ?? createProviderHealth() };
  const { metrics, provider } = batch;
  const end = metrics.steps.startTimer({ step: 'reason' });
  const { answered, failures } = await tracedBatch(batch, 'reason', questions, () => askAll(batch, questions, signal));
  end({ outcome: failures.length === 0 ? 'ok' : 'failed' });
  const { store } = batch.open();
  // A long run is handed back for its next slice, and is not done then.
  const done = store.read(() => questions.filter((question) => wasDoneUnder(store, question)));
  metrics.finishedJobs.inc({ state: 'done' }, done.length);
  for (const question of answered) provider.noteAnswer(nameOf(store.path, question));
  if (answered.length > 0) provider.noteWorked(store.path);
  return { claimed: questions.length, providerPauseMs: recordFailedQuestions(batch, failures, signal) };
}

interface AskResult {
  /** The jobs whose question the language model answered. */
  readonly answered: readonly Question[];
  readonly failures: readonly Failed[];
}

async function askAll(
  context: BatchContext,
  questions: readonly Question[],
  signal: AbortSignal | undefined,
): Promise<AskResult> {
  const waiting = [...questions];
  const failures: Failed[] = [];
  const answered: Question[] = [];
  const work = async () => {
    for (let question = waiting.shift(); question !== undefined; question = waiting.shift()) {
      try {
        signal?.throwIfAborted();
        if (await HANDLERS[question.kind](context, question, signal)) answered.push(question);
      } catch (error) {
        failures.push([question, error]);
      }
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, work));
  return { answered, failures };
}

/**
 * Records the failures of jobs whose question to the language model failed. While the model is down, these jobs wait,
 * and no attempt is counted. A job that fails again although the model answers other questions is charged an attempt.
 * @returns time for which no question should be asked (ms); null if no pause is needed
 */
function recordFailedQuestions(
  batch: Batch,
  failures: readonly Failed[],
  signal: AbortSignal | undefined,
): number | null {
  const { store } = batch.open();
  const now = batch.clock.now();
  if (signal?.aborted) {
    store.write(() => failures.forEach(([question]) => releaseJob(store, question, now, now)));
    return null;
  }
  const onProvider = failures.filter(([, error]) => isEngineError(error, 'unavailable'));
  const atFault = new Set(
    onProvider.filter((failed) => batch.provider.failsAmongAnswers(nameOf(store.path, failed[0]))),
  );
  for (const [question] of onProvider) batch.provider.noteFailureAlone(nameOf(store.path, question));
  recordFailures(batch, [...atFault], 'charge');
  return recordFailures(
    batch,
    failures.filter((failed) => !atFault.has(failed)),
  );
}

/** Returns the name of a job by which the health of the language model knows it. */
function nameOf(ledger: string, { jobNo }: Pick<Question, 'jobNo'>): string {
  return `${ledger}:${jobNo}`;
}
