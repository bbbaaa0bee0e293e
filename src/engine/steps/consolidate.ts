import { hash } from 'node:crypto';
import { setImmediate as yieldTurn } from 'node:timers/promises';
import { storeMemory } from '../commands/accept.ts';
import { dissolveGathered, enqueueConsolidation } from '../commands/consolidations.ts';
import { DEFAULT_WEIGHTS } from '../commands/relate.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { isEngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { writeGathered } from '../reasoning/write-gathered.ts';
import { readCosineBase } from '../store/calibrations.ts';
import {
  type ConsolidationRun,
  endRun,
  findRun,
  findUnfinishedRun,
  insertConsolidation,
  isRunWanted,
  listGatheredOf,
  moveRun,
  type NewConsolidation,
} from '../store/consolidations.ts';
import { setLastSeen } from '../store/dynamics.ts';
import { putConcludedEdge } from '../store/edges.ts';
import { listOutdatedGathered } from '../store/gatherable.ts';
import { finishJob, releaseJob, yieldJob, type Question } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { ConsolidationMethod, Metadata, NewMemory } from '../types.ts';
import { findThreads, type Thread } from './find-threads.ts';
import { statementOf } from './shown-memories.ts';
import { writeContextOf, type StepContext } from './step-context.ts';

/** The type of all consolidated memories, by which queries and lists find them. */
const GATHERED_TYPE = 'consolidation';
/** Time after which a run hands its job back, so that other jobs of the step come next, before it continues (ms). */
const SLICE_MS = 1_000;
/** Number of bytes of text after which a run begins no further page of memories. The next run continues there. */
const MAX_RUN_BYTES = 32 * 1024 * 1024;
/** Number of consolidations after which a run begins no further page of memories. The next run continues there. */
const MAX_RUN_MADE = 1_000;
/** Greatest number of outdated consolidated memories that one commit erases. */
const DISSOLVED_AT_ONCE = 50;

/**
 * Runs the schedule of consolidation: adds a run over all users to the ledger, unless such a run is unfinished. It adds
 * none either if the last run was complete and no memories were added since its job was added; those that this run made
 * itself count. It uses a write transaction of its own.
 */
export function enqueueScheduledConsolidation(
  { open, clock }: Pick<StepContext, 'open' | 'clock'>,
  newId: () => string,
): void {
  const { store } = open();
  if (!isRunWanted(store)) return;
  store.write(() => {
    if (findUnfinishedRun(store, null) !== undefined) return;
    enqueueConsolidation({ store, newId, now: clock.now() }, { userNo: null, again: false });
  });
}

/**
 * Continues a run of consolidating for a second, and until the text that is then being made is stored: finds threads,
 * which are groups of memories that say nearly the same or follow one topic, and makes of each thread one memory that
 * points to its sources, each in a commit of its own. The run's row records how far it has come, so that it continues
 * there after a pause or a crash. Memories that are sources of a consolidation already are not used again, unless it
 * was undone or refused and the run has `again`. Outdated consolidated memories of the user that the run has reached
 * are erased. Before it returns, the job is ended or handed back, unless the claim no longer holds it.
 * @returns whether a language model wrote one of the texts, which shows that it works; false also if it declined and
 *   sentences were taken instead
 * @throws EngineError `unavailable`, `rate_limited` and `conflict` of `LanguageModel.complete`; `unavailable` also if
 *   `signal` aborts, and of `PrivacyGuard.fields`. The job is then still held
 */
export async function consolidate(context: StepContext, question: Question, signal?: AbortSignal): Promise<boolean> {
  const until = performance.now() + SLICE_MS;
  let asked = false;
  for (;;) {
    const run = findRun(context.open().store, question.jobNo);
    if (run === undefined) return finish(context, question, asked);
    if (run.bytes > MAX_RUN_BYTES || run.made >= MAX_RUN_MADE) return finish(context, question, asked, 'cut');
    if (dissolveOutdated(context, question, run)) {
      await yieldTurn();
      if (performance.now() > until || signal?.aborted === true) return handBack(context, question, asked);
      continue;
    }
    const { threads, bytes, next } = threadsAt(context, run);
    for (const thread of threads) {
      if (thread === null) {
        await yieldTurn();
        if (signal?.aborted === true) return handBack(context, question, asked, releaseJob);
        continue;
      }
      const { content, method } = await contentOf(context, thread, signal);
      asked ||= method === 'model';
      await failpoint('before-reason-commit');
      const kept = keep(context, question, run, { ...thread, content, method });
      if (kept === 'lost') return asked;
      if (kept === 'gathered') context.metrics.gatheredMemories.inc({ method });
      if (performance.now() > until || signal?.aborted === true) return handBack(context, question, asked);
    }
    if (!storeProgress(context, question, { bytes, next })) return asked;
    if (next === null) return finish(context, question, asked, 'complete');
    if (performance.now() > until) return handBack(context, question, asked);
  }
}

function threadsAt({ open }: StepContext, run: ConsolidationRun) {
  const { store, liveModels } = open();
  return store.read(() => findThreads(store, run, readCosineBase(store, liveModels?.[0].modelNo ?? null)));
}

/**
 * Erases outdated consolidated memories (`listOutdatedGathered`) of the user that the run has reached: at most 50 with
 * 32 KiB of texts, values and metadata (`ERASE_BYTES`), or, if too many rows depend on them for one commit, only some
 * of those rows.
 * @returns whether there were any; false also if the claim no longer holds the job
 */
function dissolveOutdated(context: StepContext, question: Question, { place }: ConsolidationRun): boolean {
  const outdated = listOutdatedGathered(context.open().store, place.userNo, DISSOLVED_AT_ONCE);
  if (outdated.length === 0) return false;
  const writing = writeContextOf(context);
  return writing.store.write(() => {
    if (!holdsLease(writing.store, question)) return false;
    dissolveGathered(writing, outdated);
    return true;
  });
}

/**
 * Makes the text of the memory into which a thread (group of similar memories) is consolidated, and screens it. The
 * language model writes the text if there is one; without one, or if it declines or answers in another form, the text
 * is made of sentences of the memories. `content` is null for a text that the privacy policy refuses.
 * @throws what `writeGathered` throws, except `invalid`; EngineError `unavailable` of `PrivacyGuard.fields`
 */
async function contentOf(
  { languageModel, guard }: StepContext,
  thread: Thread,
  signal: AbortSignal | undefined,
): Promise<{ readonly content: string | null; readonly method: ConsolidationMethod }> {
  let { content } = thread;
  let method: ConsolidationMethod = 'sentences';
  if (languageModel !== null) {
    try {
      content = await writeGathered(languageModel, thread.rows.map(statementOf), signal);
      method = 'model';
    } catch (error) {
      // The model declined, or its answer has another form: sentences of the memories are taken instead.
      if (!isEngineError(error, 'invalid')) throw error;
    }
  }
  if (guard?.isOn() !== true) return { content, method };
  try {
    return { content: (await guard.fields({ content })).fields.content, method };
  } catch (error) {
    if (!isEngineError(error, 'unprocessable')) throw error;
    return { content: null, method };
  }
}

/**
 * A thread (group of similar memories) with the text of the memory to make of it. `content` is null if the privacy
 * policy refused the text.
 */
type Kept = Omit<Thread, 'content'> & { readonly content: string | null; readonly method: ConsolidationMethod };

/**
 * Stores a consolidated memory with links to its sources, unless one of them was erased, changed or consolidated
 * elsewhere since it was read. If the text was refused, it only records the sources, so that they are not consolidated
 * again.
 * @returns `gathered` if a memory was made; `passed` if none was; `lost`, with nothing changed, if the claim no longer
 *   holds the job
 */
function keep(
  context: StepContext,
  question: Question,
  run: ConsolidationRun,
  { rows, content, method }: Kept,
): 'gathered' | 'passed' | 'lost' {
  const writing = { ...writeContextOf(context), trace: question.trace ?? undefined };
  const { store, now, newId } = writing;
  return store.write(() => {
    if (!holdsLease(store, question)) return 'lost';
    const sources = rows.map(({ memoryNo }) => memoryNo);
    const versions = new Map(readMemoryRows(store, sources).map(({ memoryNo, version }) => [memoryNo, version]));
    const areAsRead = rows.every(({ memoryNo, version }) => versions.get(memoryNo) === version);
    if (!areAsRead || listGatheredOf(store, sources).length > 0) return 'passed';
    const made = { id: newId(), runId: question.id, userNo: run.place.userNo, sources, method };
    const memoryNo = content === null ? null : storeGathered(writing, { ...made, rows, content });
    insertConsolidation(store, { ...made, memoryNo }, question.jobNo, now);
    return memoryNo === null ? 'passed' : 'gathered';
  });
}

/**
 * Stores a consolidated memory with links to its sources. Call it inside a write transaction.
 * @returns its `memoryNo`
 */
function storeGathered(
  writing: WriteContext,
  {
    id,
    userNo,
    rows,
    content,
    method,
  }: Omit<NewConsolidation, 'memoryNo'> & { readonly rows: readonly MemoryRow[]; readonly content: string },
): number {
  const { store, now } = writing;
  // An add of an equal text is no duplicate of it: an undo would take what was added.
  const unlikeAnyText = hash('sha256', `consolidation ${id}`, 'buffer').subarray(0, 16);
  const memory = memoryOf(rows, { content, origin: { consolidation: id, consolidation_method: method } });
  const { memoryNo } = storeMemory(writing, { memory, userNo, hash: unlikeAnyText, bulk: true, kind: 'import' });
  setLastSeen(store, memoryNo, Math.max(...rows.map(({ last_seen_at }) => last_seen_at)));
  const link = { similarity: null, weight: DEFAULT_WEIGHTS.derived_from };
  for (const { memoryNo: dst } of rows)
    putConcludedEdge(store, { src: memoryNo, dst, type: 'derived_from' }, link, now);
  return memoryNo;
}

/**
 * Makes the data of the memory into which others are consolidated. It has no session, since its sources may have
 * several, and it has what all sources have in common: user, tags and metadata.
 * @param made.origin metadata about the consolidation itself. If the sources' metadata have one of its keys too, the
 *   sources' value is kept, so that every condition on metadata matches the memory as it matches its sources
 */
function memoryOf(
  rows: readonly MemoryRow[],
  { content, origin }: { readonly content: string; readonly origin: Metadata },
): NewMemory {
  const [first] = rows as [MemoryRow];
  const importances = rows.map(({ importance }) => importance).filter((importance) => importance !== null);
  return {
    content,
    userId: first.user_id,
    sessionId: '',
    type: GATHERED_TYPE,
    confidence: Math.min(...rows.map(({ confidence }) => confidence)),
    importance: importances.length === 0 ? null : Math.max(...importances),
    metadata: { ...origin, ...(JSON.parse(first.metadata) as Metadata) },
    tags: JSON.parse(first.tags) as string[],
    files: [],
    title: '',
    gist: '',
    entities: null,
    externalId: null,
    eventTime: Math.max(...rows.map(({ event_time }) => event_time)),
    validFrom: null,
    validTo: null,
    expiresAt: null,
  };
}

/**
 * Stores how far a run of consolidation has come, so that it can continue there; nothing after its last memory (`next`
 * is null).
 * @returns false, with nothing changed, if the claim no longer holds the job
 */
function storeProgress(
  { open }: StepContext,
  question: Question,
  { bytes, next }: Pick<ReturnType<typeof threadsAt>, 'bytes' | 'next'>,
): boolean {
  const { store } = open();
  return store.write(() => {
    const isHeld = holdsLease(store, question);
    if (isHeld && next !== null) moveRun(store, question.jobNo, next, { bytes });
    return isHeld;
  });
}

/**
 * Hands the job back to the ledger, so that other jobs come next before it continues.
 * @param giveBack `yieldJob` after a slice that made progress; `releaseJob` after one that did not, whose crashes and
 *   failed attempts stay counted
 * @returns `asked`, unchanged: whether a language model wrote one of the texts
 */
function handBack(
  { open, clock }: StepContext,
  question: Question,
  asked: boolean,
  giveBack: typeof yieldJob | typeof releaseJob = yieldJob,
): boolean {
  const { store } = open();
  const now = clock.now();
  store.write(() => giveBack(store, question, now, now));
  return asked;
}

/**
 * Ends the job, unless the claim no longer holds it. With `ended` it also ends the run: `complete` if all memories were
 * looked at, `cut` if the run reached its limit of bytes or consolidations.
 * @returns `asked`, unchanged: whether a language model wrote one of the texts
 */
function finish({ open, clock }: StepContext, question: Question, asked: boolean, ended?: 'complete' | 'cut'): boolean {
  const { store } = open();
  store.write(() => {
    if (!holdsLease(store, question)) return;
    if (ended !== undefined) endRun(store, question.jobNo, ended);
    finishJob(store, question, clock.now());
  });
  return asked;
}
