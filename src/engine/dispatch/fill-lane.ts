import { serialiseError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import type { QueuedStep } from '../jobs.ts';
import type { DispatchBatch } from '../store/dispatch.ts';
import type { Readiness } from '../store/postgres/ledger-reader.ts';
import { messageAttributes, type Span, type Tracing } from '../tracing.ts';
import type { DispatchParts } from './dispatch-parts.ts';
import type { DispatchLedger, QueuedJob } from './dispatch-ports.ts';
import { countAhead, roomFor, tenantsInTurn, type Lane, type Left } from './lanes.ts';

/**
 * Number of jobs ahead of a new one in a queue from which on the workers have enough to do. A tenant that was served
 * within the last 100 ms then gets its next job only when its rows fill it; with fewer jobs ahead, any rows are enough.
 */
const GATHER_FROM_JOBS = 2;
/**
 * Longest time for which rows are collected after their tenant was served (ms). Then the tenant is served with the rows
 * that it has, however few.
 */
const GATHER_MS = 100;
/**
 * Greatest number of jobs that one call adds to a queue. So at most 8 bulk jobs of each step are added before
 * interactive ones are served again.
 */
const MAX_ADD = 8;
/**
 * Greatest number of ledgers that `peek` reads in one statement, to see which of them have rows for the room in a
 * queue.
 */
const MOST_PEEKED = 32;

/**
 * Takes due rows of each tenant in turn, and adds those of one tenant to the step's queue as one job, while the queue
 * has room for the lane: at most 8 jobs in one call. Rows are taken only if they can be handed out. A tenant that was
 * served within the last 100 ms is passed over if its rows do not fill a job, unless the queue is nearly empty.
 * @returns what is left to do in this lane
 * @throws the queue's error, after the rows were given back; the error of a look at several ledgers in one read
 *   (`peek`), after the rows that had been taken were added to the queue
 */
export async function fillLane(lane: Lane, options: DispatchParts): Promise<Left> {
  const { ledger, queues, guard, signal } = options;
  const { step, bulk, tenants, servedAt } = lane;
  if (tenants.size === 0) return 'nothing';
  const waiting = await queues.waiting(step);
  const room = Math.min(MAX_ADD, roomFor(lane, waiting));
  const now = performance.now();
  for (const [tenant, at] of servedAt) if (now - at > GATHER_MS) servedAt.delete(tenant);
  // A full queue is looked at every 20 ms, and the tenants that wait may be many.
  if (room <= 0) return 'waiting';
  const jobs: QueuedJob[] = [];
  let gathers = false;
  const turn = tenantsInTurn(lane);
  const peek = createPeek(lane, turn, ledger);
  try {
    for (const [place, tenant] of turn.entries()) {
      if (jobs.length >= room || signal.aborted) break;
      const partial = !servedAt.has(tenant) || countAhead(lane, waiting) < GATHER_FROM_JOBS;
      const seen = await peek(place);
      const take = () => guard.attempt(tenant, () => ledger.take(tenant, { step, bulk, partial }));
      const batch = seen === 'none' ? undefined : seen === 'few' && !partial ? 'too_few' : await take();
      if (batch === undefined) {
        tenants.delete(tenant);
      } else if (batch === 'too_few') {
        gathers = true;
      } else {
        lane.servedLast = tenant;
        servedAt.set(tenant, now);
        jobs.push(jobOf(tenant, batch));
      }
    }
  } finally {
    // Also after a ledger could not be read: rows that were taken are added or given back.
    await addJobs(step, jobs, options);
  }
  if (jobs.length > 0) return 'more';
  return gathers || tenants.size > 0 ? 'waiting' : 'nothing';
}

/**
 * Makes the function that tells whether the tenant at a place of `turn` (from 0) has rows for a lane. Where ledgers can
 * be read together, a call at every 32nd place reads 32 of them, and calls at the places between return what it found;
 * so call it for each place in order. Elsewhere it returns `full` without reading: `take` tells.
 */
function createPeek(
  { step, bulk }: Lane,
  turn: readonly string[],
  { together }: DispatchLedger,
): (place: number) => Promise<Readiness> {
  if (together === null) return async () => 'full';
  let seen: ReadonlyMap<string, Readiness> = new Map();
  return async (place) => {
    if (place % MOST_PEEKED === 0) seen = await together.peek(turn.slice(place, place + MOST_PEEKED), { step, bulk });
    return seen.get(turn[place]!) ?? 'none';
  };
}

function jobOf(tenant: string, { name, bulk, alone, jobNos, traces }: DispatchBatch): QueuedJob {
  return { name, bulk, payload: { tenant, jobNos: [...jobNos], alone }, traces };
}

async function addJobs(step: QueuedStep, jobs: readonly QueuedJob[], options: DispatchParts): Promise<void> {
  const { ledger, queues, guard, metrics, tracing, hint } = options;
  if (jobs.length === 0) return;
  const spans = tracing ? startSending(tracing, step, jobs) : [];
  try {
    await queues.add(step, jobs);
    metrics.dispatchedJobs.inc({ step }, jobs.length);
    for (const { payload } of jobs) metrics.dispatchedRows.inc({ step }, payload.jobNos.length);
    await failpoint('after-dispatch');
  } catch (error) {
    for (const span of spans) span.fail(serialiseError(error).code);
    for (const { payload } of jobs) {
      await guard.attempt(payload.tenant, () => ledger.giveBack(payload.tenant, payload.jobNos));
      hint(payload.tenant);
    }
    throw error;
  } finally {
    for (const span of spans) span.end();
  }
}

/** Starts a span for each job, by OpenTelemetry's conventions for messages. */
function startSending(tracing: Tracing, step: QueuedStep, jobs: readonly QueuedJob[]): Span[] {
  return jobs.flatMap(({ payload, traces }) => {
    const attributes = messageAttributes('send', step, payload.jobNos.length);
    return tracing.start(`send ${step}`, { kind: 'producer', attributes, continues: traces }) ?? [];
  });
}
