import { isEngineError } from '../errors.ts';
import { QUESTIONS_MOST } from '../jobs.ts';
import { createProviderHealth } from '../providers/retry.ts';
import { checkContradictions } from '../steps/check-contradictions.ts';
import { reflect } from '../steps/reflect.ts';
import type { StepContext } from '../steps/step-context.ts';
import {
  claimJobs,
  claimSuspects,
  claimThese,
  releaseJob,
  type Claim,
  type HeldJob,
  type Question,
} from '../store/jobs.ts';
import type { BatchContext } from './batch-context.ts';
import { settleFailures, type Batch, type BatchResult, type Failed, type NamedJobs } from './run-batch.ts';
import { tracedBatch } from './traced-batch.ts';

/** Questions under way at once. */
const ASKED_AT_ONCE = 4;

/**
 * What is asked, and what is done with the answer. A handler ends its job, or throws and has changed nothing; it returns whether there was
 * anything to ask.
 */
type Handler = (context: StepContext, question: Question, signal?: AbortSignal) => Promise<boolean>;
const HANDLERS: Readonly<Record<Question['kind'], Handler>> = {
  contradictions: checkContradictions,
  reflection: reflect,
};

/**
 * Claims some of a tenant's questions to the language model and asks them.
 * @param context its `provider` is the language model's: it may be down while the embedding provider works, and the other way round
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
    limit: QUESTIONS_MOST,
    step: 'reason',
  } as const;
  const claims = store.write(() => (alone ? claimSuspects(store, options) : claimJobs(store, options)));
  return ask(context, claims, signal);
}

/** Asks the questions that a queue named, as far as the ledger owes them; `context` as above. */
export async function runNamedQuestions(
  context: BatchContext,
  { seqs, alone }: Pick<NamedJobs, 'seqs' | 'alone'>,
  signal?: AbortSignal,
): Promise<BatchResult> {
  const { open, owner, config, clock } = context;
  const { store } = open();
  const options = { seqs, alone, owner, leaseMs: config.OM_LEASE_MS, now: clock.now(), step: 'reason' } as const;
  const claims = store.write(() => claimThese(store, options));
  return ask(context, claims, signal);
}

async function ask(context: BatchContext, claims: readonly Claim[], signal?: AbortSignal): Promise<BatchResult> {
  if (claims.length === 0) return { claimed: 0, providerPauseMs: null };
  const batch = { ...context, provider: context.provider ?? createProviderHealth() };
  const { metrics, provider } = batch;
  const end = metrics.steps.startTimer({ step: 'reason' });
  const questions = claims as readonly HeldJob[] as readonly Question[];
  const { wasAnswered, failures } = await tracedBatch(batch, 'reason', claims, () => askAll(batch, questions, signal));
  end({ outcome: failures.length === 0 ? 'ok' : 'failed' });
  metrics.finishedJobs.inc({ state: 'done' }, questions.length - failures.length);
  if (wasAnswered) {
    provider.noteAnswer();
    provider.noteWorked(batch.open().store.path);
  }
  return { claimed: questions.length, providerPauseMs: settle(batch, failures, signal) };
}

interface Asked {
  /** The language model answered one at least. */
  readonly wasAnswered: boolean;
  readonly failures: readonly Failed[];
}

async function askAll(
  context: BatchContext,
  questions: readonly Question[],
  signal: AbortSignal | undefined,
): Promise<Asked> {
  const waiting = [...questions];
  const failures: Failed[] = [];
  let wasAnswered = false;
  const work = async () => {
    for (let question = waiting.shift(); question !== undefined; question = waiting.shift()) {
      try {
        signal?.throwIfAborted();
        const isAnswered = await HANDLERS[question.kind](context, question, signal);
        wasAnswered ||= isAnswered;
      } catch (error) {
        failures.push([question, error]);
      }
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, work));
  return { wasAnswered, failures };
}

/**
 * A language model that is down costs a question nothing: it waits. One that fails again and again while others are answered has itself
 * to blame, and is charged. @returns how long to ask nothing
 */
function settle(batch: Batch, failures: readonly Failed[], signal: AbortSignal | undefined): number | null {
  const { store } = batch.open();
  const now = batch.clock.now();
  if (signal?.aborted) {
    store.write(() => failures.forEach(([question]) => releaseJob(store, question, now, now)));
    return null;
  }
  const nameOf = ([{ seq }]: Failed) => `${store.path}:${seq}`;
  const onProvider = failures.filter(([, error]) => isEngineError(error, 'unavailable'));
  const atFault = new Set(onProvider.filter((failed) => batch.provider.failsAmongAnswers(nameOf(failed))));
  for (const failed of onProvider) batch.provider.noteFailureAlone(nameOf(failed));
  settleFailures(batch, [...atFault], 'charge');
  return settleFailures(
    batch,
    failures.filter((failed) => !atFault.has(failed)),
  );
}
