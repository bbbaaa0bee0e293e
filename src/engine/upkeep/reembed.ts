/**
 * Changes the embedding model of a file. The new model's vectors are made beside the old ones, which answer queries
 * meanwhile. Then both models run the guarded evaluation sets. One commit makes the new model live; after it, waypoints
 * are measured again in the order of the memories, and the old model's vectors are deleted in slices. All of it can be
 * resumed: the vectors themselves show which memories still need one, and a cursor stores the rest of the progress.
 * With `OM_EMBED_MODE=advanced` the model is a set of models, one for each sector, which becomes live as a whole.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { createGatheredTest } from '../store/consolidations.ts';
import { appendEvent } from '../store/events.ts';
import { takeBackMemories } from '../commands/reembed.ts';
import { EngineError } from '../errors.ts';
import type { Logger } from '../ports.ts';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { areThere, findNearest, type Found, linkModel, loadIndexes, putNearest } from '../steps/link.ts';
import { settleLinkBases, waypointThreshold } from '../steps/settle-link-bases.ts';
import { liveSources, type StepContext } from '../steps/step-context.ts';
import { finishJob, type HeldJob, yieldJob } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import {
  areSameModels,
  distinctModels,
  dropModelSlice,
  listStrayModels,
  numbersOf,
  putLiveModels,
  type SectorModels,
} from '../store/live-model.ts';
import { listMemoryNosAfter } from '../store/memories.ts';
import {
  countReembedJobs,
  countUpTo,
  deleteReembed,
  findReembed,
  insertReembedJob,
  listUnembedded,
  listSurplus,
  putReembed,
  type ReembedRecord,
  type ReembedTrial,
} from '../store/reembed.ts';
import { countGivenUp } from '../store/refused-memories.ts';
import { deleteVector } from '../store/vectors.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { prepareFit } from './calibrate-scores.ts';
import { BREATH_MS, LOOKED_AT, noteTending } from './tend-reembed.ts';

/**
 * Greatest number of unfinished jobs that embed memories by the new model. Further ones are added once at most half of
 * them are left. That is enough for the fastest embedder between two slices of the job that directs the change, and few
 * enough to be deleted quickly if the change is cancelled.
 */
const WINDOW_JOBS = 1_024;
/**
 * Time until the job that directs a change of the model checks the ledger again while memories are being embedded (ms).
 */
const LOOK_AGAIN_MS = 100;
/** Time after which the job that directs a change of the model is handed back (ms), so that other jobs come next. */
const SLICE_MS = 100;
/** Greatest number of memories that one commit links again. */
const RELINKED_AT_ONCE = 16;
/** Greatest number of vectors of an old model that one commit deletes. */
const DROPPED_AT_ONCE = 200;
/** Greatest number of vector numbers that one search for surplus vectors examines. */
const SURPLUS_WITHIN = 2_000;
/**
 * Time after which a job is due again that cannot go on now (ms): because this worker's settings name another model, so
 * that another worker may have to do it, or because a provider gives no vectors for the evaluation sets.
 */
export const NOT_MINE_MS = 5_000;
/**
 * A new model may refuse 1 in this number of memories, rounded down, but at least one in a file of two or more
 * memories. If it refuses more, it does not go live, unless the change was started with `withoutRefused`.
 */
const REFUSED_ONE_OF = 100;

type ControllerContext = StepContext & { readonly logger: Logger };

/**
 * Result of one step of trying new models on the guarded evaluation sets: `holds` if the models lower the scores of no
 * set; else the state from which the trial continues. `waits` is true if it must wait first, because a provider gave no
 * vector.
 */
export type TrialStep = 'holds' | { readonly trial: ReembedTrial; readonly waits: boolean };

/**
 * Runs the guarded evaluation sets by models that are about to go live, some queries at each call.
 * @param begun the state that the last call returned; undefined at the first call
 * @throws EngineError `invalid` if the models lower the scores of a set
 */
export type TriesModels = (models: SectorModels, begun: ReembedTrial | undefined) => Promise<TrialStep>;

/**
 * Time until the next slice of work on a change of the model (ms), 0 for at once; `finished` if nothing is left to do,
 * or if the lease is lost.
 */
type Next = { readonly inMs: number } | 'finished';

/**
 * Does one slice of work on a change of the model, some 100 ms, and then ends the job that directs the change or hands
 * it back for its next slice. At the end of the change, its record is deleted and the event `reembed.finished` added.
 * @param claim the directing job, which this worker holds
 * @throws EngineError `invalid` if the new model refused too many memories, or lowers the scores of a guarded
 *   evaluation set; the caller then gives the job up
 */
export async function controlReembed(context: ControllerContext, claim: HeldJob, tries: TriesModels): Promise<void> {
  const next = await runSlice(context, claim, tries);
  const { store } = context.open();
  const now = context.clock.now();
  const isFinished = store.write(() => {
    if (!holdsLease(store, claim)) return false;
    if (next !== 'finished') {
      yieldJob(store, claim, now + next.inMs, now);
      return false;
    }
    if (findReembed(store) !== undefined) appendEvent(store, 'reembed.finished');
    deleteReembed(store);
    finishJob(store, claim, now);
    return true;
  });
  if (isFinished) context.logger.info({}, 'reembed_finished');
}

async function runSlice(context: ControllerContext, claim: HeldJob, tries: TriesModels): Promise<Next> {
  const { store, live, configuredModels } = context.open();
  const record = findReembed(store);
  if (record === undefined) return 'finished';
  if (live === null) return { inMs: NOT_MINE_MS };
  switch (record.phase) {
    case 'embed':
      if (configuredModels === null || !areSameModels(record.target, numbersOf(configuredModels))) {
        return { inMs: NOT_MINE_MS };
      }
      noteTending(store, record.target, context.clock.now());
      return enqueueMemories(context, claim, { record, models: configuredModels, tries });
    case 'link':
      return relinkMemories(context, claim);
    case 'drop':
      return dropOthers(context, claim, record);
  }
}

/**
 * Does a slice of the phase `embed`: adds jobs for memories that need a vector, until 1,024 are unfinished. Once a
 * whole pass over the memories finds none that needs one, and the results of no guarded evaluation set get worse, the
 * new model goes live.
 * @param change.models the configured models, which are the target of the change
 * @throws EngineError `invalid` if the model refused too many memories (`stopIfRefused`), or lowers a guarded set
 */
async function enqueueMemories(
  context: ControllerContext,
  claim: HeldJob,
  {
    record,
    models,
    tries,
  }: { readonly record: ReembedRecord; readonly models: SectorModels; readonly tries: TriesModels },
): Promise<Next> {
  const { store } = context.open();
  stopIfRefused(context, claim, record);
  const waiting = countReembedJobs(store);
  if (waiting > WINDOW_JOBS / 2) return { inMs: LOOK_AGAIN_MS };
  const { cursor } = record;
  const { memoryNos, upTo } = store.read(() =>
    listUnembedded(store, { models, after: cursor, within: LOOKED_AT, limit: WINDOW_JOBS - waiting }),
  );
  await commitInSlices(
    () => context.open().store,
    memoryNos,
    (current, memory) => {
      if (!holdsLease(current, claim)) return;
      insertReembedJob(current, { id: context.newId(), memory, now: context.clock.now() });
    },
  );
  const isAtEnd = upTo === Infinity;
  const owed = record.owed + memoryNos.length;
  const moved = { ...record, owed, cursor: isAtEnd ? (memoryNos.at(-1) ?? cursor) : upTo };
  if (!isAtEnd || waiting + memoryNos.length > 0) {
    putRecord(context, claim, moved);
    return { inMs: isAtEnd || memoryNos.length > 0 ? LOOK_AGAIN_MS : 0 };
  }
  if (owed > 0) {
    putRecord(context, claim, { ...moved, cursor: 0, owed: 0, pass: record.pass + 1 });
    return { inMs: 0 };
  }
  const step = record.unguarded === true ? 'holds' : await tryLive(context, { record, models, tries });
  if (step !== 'holds') {
    putRecord(context, claim, { ...record, trial: step.trial });
    return { inMs: step.waits ? NOT_MINE_MS : 0 };
  }
  goLive(context, claim, record, models);
  return { inMs: 0 };
}

/**
 * Takes the next step of trying the new model on the guarded evaluation sets. If the models are live already and only
 * gaps were filled, no trial is needed and the result is `holds`.
 */
async function tryLive(
  { open, clock }: ControllerContext,
  {
    record,
    models,
    tries,
  }: { readonly record: ReembedRecord; readonly models: SectorModels; readonly tries: TriesModels },
): ReturnType<TriesModels> {
  const { store, liveModels } = open();
  if (liveModels !== null && areSameModels(numbersOf(liveModels), record.target)) return 'holds';
  if (record.trial === undefined) {
    // Scores rest on the fit, which is otherwise made when a model goes live. It is kept by model.
    const putFit = prepareFit(store, distinctModels(models), clock.now());
    store.write(putFit);
  }
  return tries(models, record.trial);
}

/**
 * Stops the change if the model refused too many texts, since it is most likely misconfigured: once it were live, these
 * memories would be found by words alone, and their old vectors would be deleted. This is checked in each slice, so
 * that such a model is not first called for every memory. With `withoutRefused`, or if the model is live already,
 * nothing is checked.
 * @throws EngineError `invalid` if it refused more than 1 memory in 100 and more than a single one, or the only memory
 *   of the file
 */
function stopIfRefused(context: ControllerContext, claim: HeldJob, record: ReembedRecord): void {
  const { store, liveModels } = context.open();
  if (record.withoutRefused || (liveModels !== null && areSameModels(numbersOf(liveModels), record.target))) return;
  const { refused } = countGivenUp(store);
  if (refused === 0) return;
  const memories = countUpTo(store);
  if (refused <= Math.max(memories > 1 ? 1 : 0, Math.floor(memories / REFUSED_ONE_OF))) return;
  store.write(() => {
    if (holdsLease(store, claim)) takeBackMemories(store, record);
  });
  throw new EngineError(
    'invalid',
    `the new model refused ${refused} of ${memories} memories and does not go live: ` +
      '`cairn jobs --state dead` says why, `cairn reembed` tries them again, `cairn reembed --without-refused` goes ' +
      'on without their vectors',
  );
}

/**
 * Makes the new model live in one commit, after which queries and links use it, and begins the phase `link`. If the
 * model was live already, only gaps were filled, and the phase `drop` begins.
 */
function goLive(context: ControllerContext, claim: HeldJob, record: ReembedRecord, models: SectorModels): void {
  const { store, liveModels } = context.open();
  const now = context.clock.now();
  const common = { ...record, trial: undefined, cursor: 0, wentLiveAt: now, since: { at: now, done: 0 } };
  if (liveModels !== null && areSameModels(numbersOf(liveModels), record.target))
    return putRecord(context, claim, { ...common, phase: 'drop' });
  const putFit = prepareFit(store, distinctModels(models), now);
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    putLiveModels(store, record.target);
    putFit();
    putReembed(store, { ...common, phase: 'link' });
  });
  context.logger.info({ model: record.target }, 'model_live');
}

/**
 * Does a slice of the phase `link`: links memories as if they had been added one after the other, each to a memory that
 * was added before it. The link job of a memory that this phase has not reached ends without a waypoint, which this
 * phase sets.
 */
async function relinkMemories(context: ControllerContext, claim: HeldJob): Promise<Next> {
  const deadline = performance.now() + SLICE_MS;
  while (performance.now() < deadline) {
    if ((await relinkNext(context, claim)) === 'finished') return { inMs: 0 };
    await pause(BREATH_MS);
  }
  return { inMs: 0 };
}

async function relinkNext(context: ControllerContext, claim: HeldJob): Promise<'more' | 'finished'> {
  await loadIndexes(context.open);
  await settleLinkBases(context);
  const { store, liveModels, indexes } = context.open();
  const sources = liveSources(context);
  const record = findReembed(store);
  if (record?.phase !== 'link' || liveModels === null) return 'finished';
  const next = listMemoryNosAfter(store, record.cursor, RELINKED_AT_ONCE);
  if (next.length === 0 || sources.size === 0) {
    store.write(() => {
      if (!holdsLease(store, claim)) return;
      if (sources.size > 0 && listMemoryNosAfter(store, record.cursor, 1).length > 0) return;
      putReembed(store, { ...record, phase: 'drop', cursor: 0 });
    });
    return sources.size === 0 ? 'finished' : 'more';
  }
  const isGathered = createGatheredTest(store);
  const searches = next.map((memoryNo) => ({ memoryNo, upTo: next.at(-1)! }));
  const results = findNearest(
    { store, liveModels, indexes },
    searches,
    (other, memoryNo) => other < memoryNo && !isGathered(other) && !isGathered(memoryNo),
  );
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    // If anything changed since the search, the next look searches again.
    if (!results.every((result) => isCurrent({ store, liveModels }, result))) return;
    for (const { memoryNo, modelNo, nearest } of results) {
      const threshold = waypointThreshold(store, modelNo, sources);
      putNearest(store, memoryNo, { nearest, threshold, now: context.clock.now(), models: liveModels });
    }
    putReembed(store, { ...record, cursor: next.at(-1)! });
  });
  return 'more';
}

function isCurrent(tenant: Pick<OpenTenant, 'store' | 'liveModels'>, { memoryNo, modelNo, nearest }: Found): boolean {
  const isThere = nearest === undefined || areThere(tenant.store, nearest);
  return isThere && linkModel(tenant, memoryNo).modelNo === modelNo;
}

/**
 * Does a slice of the phase `drop`: deletes vectors of models that are neither live nor configured, after queries that
 * began with the old model have ended.
 */
async function dropOthers(context: ControllerContext, claim: HeldJob, begun: ReembedRecord): Promise<Next> {
  const { config, clock } = context;
  const patience = config.OM_QUERY_EMBED_TIMEOUT_MS + config.OM_LLM_RERANK_TIMEOUT_MS;
  const now = clock.now();
  const leftMs = (begun.wentLiveAt ?? 0) + patience - now;
  // If the clock was set back, the pause is made once more.
  if (leftMs > patience) putRecord(context, claim, { ...begun, wentLiveAt: now });
  if (leftMs > 0) return { inMs: Math.min(leftMs, patience) };
  const deadline = performance.now() + SLICE_MS;
  while (performance.now() < deadline) {
    const { store, liveModels, configuredModels } = context.open();
    const record = findReembed(store);
    const used = [...(liveModels ?? []), ...(configuredModels ?? [])].map(({ modelNo }) => modelNo);
    const [stray] = listStrayModels(store, used);
    if (record === undefined) return 'finished';
    if (stray === undefined) {
      if (dropSurplus(context, claim, record) === 'finished') return 'finished';
      await pause(BREATH_MS);
      continue;
    }
    store.write(() => {
      if (!holdsLease(store, claim)) return;
      const step = dropModelSlice(store, stray, { after: record.cursor, limit: DROPPED_AT_ONCE });
      putReembed(store, { ...record, cursor: step === 'dropped' ? 0 : step.after });
    });
    await pause(BREATH_MS);
  }
  return { inMs: 0 };
}

/**
 * Checks the next 2,000 vector numbers, and deletes in one commit the vectors whose model is live but serves no sector
 * that their memory has now. A change of the sectors' models leaves such vectors.
 * @returns `more` to be called again; `finished` if all were checked, the lease is lost, one model embeds all sectors,
 *   or the settings name other models than the live ones
 */
function dropSurplus(context: ControllerContext, claim: HeldJob, record: ReembedRecord): 'more' | 'finished' {
  const { store, liveModels, configuredModels, indexes } = context.open();
  const isSettled = liveModels !== null && configuredModels !== null;
  if (!isSettled || liveModels.length === 1 || !areSameModels(numbersOf(liveModels), numbersOf(configuredModels))) {
    return 'finished';
  }
  return store.write(() => {
    if (!holdsLease(store, claim)) return 'finished';
    const { vectors, upTo } = listSurplus(store, { models: liveModels, after: record.cursor, within: SURPLUS_WITHIN });
    for (const { vectorNo, modelNo } of vectors) {
      deleteVector(store, vectorNo);
      indexes.get(modelNo)?.remove([vectorNo]);
    }
    if (upTo === Infinity) return 'finished';
    putReembed(store, { ...record, cursor: upTo });
    return 'more';
  });
}

function putRecord(context: ControllerContext, claim: HeldJob, record: ReembedRecord): void {
  const { store } = context.open();
  store.write(() => {
    if (holdsLease(store, claim)) putReembed(store, record);
  });
}
