import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import { type OpenTenant, spaceOf } from '../open-tenant.ts';
import type { Clock, Logger } from '../ports.ts';
import {
  areSameModels,
  distinctModels,
  dropModelSlice,
  dropRelinkIndexes,
  listStrayModels,
  numbersOf,
  putLiveModels,
  type SectorModelNumbers,
  type SectorModels,
} from '../store/live-model.ts';
import { finishJob, holdsLease, type HeldJob } from '../store/jobs.ts';
import type { Store } from '../store/open-store.ts';
import {
  countReembedJobs,
  countUpTo,
  deleteReembed,
  findReembed,
  insertDirector,
  insertReembedJob,
  isUnderWay,
  listMemoriesAfter,
  listOwed,
  listSurplus,
  putReembed,
  withdrawJobs,
  yieldDirector,
  type ReembedRecord,
} from '../store/reembed.ts';
import { findWholeVector, MEAN_WINDOW } from '../store/vectors.ts';
import type { WriteContext } from '../writer/write-context.ts';
import { prepareFit } from './calibrate-scores.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { findNearest, linkModel, putNearest, type Neighbour } from './link.ts';
import { liveSources, type StepContext } from './step-context.ts';

/**
 * Changing the embedding model of a file. The new model's vectors are made beside the old one's, which answer queries meanwhile; then one
 * commit makes the new model live, waypoints are measured anew in the order of the memories, and what the old model made goes in slices.
 * All of it is resumable: which memories are owed a vector is read off the vectors themselves, the rest is a cursor. In the advanced mode
 * the model is a set of them, one a sector, which becomes live as a whole.
 */

/** Jobs for memories in the ledger at once: enough for the fastest embedder between two looks, few enough to be taken back quickly. */
const WINDOW_JOBS = 1_024;
/** Memories that one look for owed vectors passes at most. */
const LOOKED_AT = 20_000;
const LOOK_AGAIN_MS = 100;
/** Work at a stretch, between which others get their turn. */
const SLICE_MS = 100;
const BREATH_MS = 2;
const RELINKED_AT_ONCE = 16;
const DROPPED_AT_ONCE = 200;
/** Vectors that one look for surplus ones passes. */
const SURPLUS_WITHIN = 2_000;
/** A worker with other settings cannot go on; another may. */
export const NOT_MINE_MS = 5_000;

/**
 * Begins to change the model, or goes on with what was paused. Where the configured model is live already, gaps in its vectors are filled
 * and what other models left behind is dropped.
 * @throws EngineError `conflict` while an earlier change is not finished
 */
export function startReembed(
  { store, now, newId }: Pick<WriteContext, 'store' | 'now' | 'newId'>,
  { target }: { readonly target: SectorModelNumbers },
): void {
  if (isUnderWay(store)) return;
  const known = findReembed(store);
  const isSame = known !== undefined && areSameModels(known.target, target);
  if (known !== undefined && !isSame && known.phase !== 'embed') {
    throw new EngineError('conflict', 'the change of the model before this one is not finished: let it go on first');
  }
  const record = isSame ? known : ({ target, phase: 'embed', cursor: 0, owed: 0, pass: 1, wentLiveAt: null } as const);
  putReembed(store, { ...record, since: { at: now, done: countUpTo(store, record.cursor) } });
  insertDirector(store, { id: newId(), now });
}

/** Stops where it is; `startReembed` goes on from there. @throws EngineError `conflict` where none is under way */
export function pauseReembed({ store }: Pick<WriteContext, 'store'>): void {
  const record = findReembed(store);
  if (record === undefined || !isUnderWay(store)) throw new EngineError('conflict', 'no re-embedding is under way');
  takeBack(store, record);
}

/** Gives up a change that has not gone live. What was embedded stays, so that a later start passes over it. */
export function cancelReembed({ store }: Pick<WriteContext, 'store'>): void {
  const record = findReembed(store);
  if (record === undefined) throw new EngineError('conflict', 'no re-embedding is under way');
  if (record.phase !== 'embed') {
    throw new EngineError('conflict', 'the new model is live already: change the settings back and re-embed instead');
  }
  takeBack(store, record);
  deleteReembed(store);
}

function takeBack(store: Store, record: ReembedRecord): void {
  const first = withdrawJobs(store);
  if (record.phase === 'embed' && first !== undefined) {
    putReembed(store, { ...record, cursor: Math.min(record.cursor, first - 1) });
  }
}

/** Begins by itself what costs nothing, and gives up what the settings do not ask for any more. */
export function tendReembed({
  open,
  config,
  clock,
}: {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
}): void {
  const { store, liveModels, configuredModels } = open();
  if (liveModels === null || configuredModels === null) return;
  const target = numbersOf(configuredModels);
  const found = findReembed(store);
  const isForAnother = found?.phase === 'embed' && !areSameModels(found.target, target);
  const isNeeded = !areSameModels(numbersOf(liveModels), target) && (found === undefined || isForAnother);
  const starts = isNeeded && startsByItself(config);
  if (!isForAnother && !starts) return;
  store.write(() => {
    const record = findReembed(store);
    if (record?.phase === 'embed' && !areSameModels(record.target, target)) cancelReembed({ store });
    if (starts && findReembed(store) === undefined) {
      startReembed({ store, now: clock.now(), newId: uuidv7 }, { target });
    }
  });
}

/** Unless it is said, what computes on this machine does and what is paid for does not. */
export function startsByItself({ OM_REEMBED, OM_EMBEDDINGS }: Config): boolean {
  if (OM_REEMBED !== undefined) return OM_REEMBED === 'auto';
  return OM_EMBEDDINGS === 'synthetic' || OM_EMBEDDINGS === 'local';
}

type DirectorContext = StepContext & { readonly logger: Logger };

/** What a slice of the director's work leaves to do: the time of the next one, or nothing. */
type Next = { readonly inMs: number } | 'finished';

/** One slice of directing a change of the model. The claim is handed back, or ended, whatever becomes of it. */
export async function directReembed(context: DirectorContext, claim: HeldJob): Promise<void> {
  const next = await runSlice(context, claim);
  const { store } = context.open();
  const now = context.clock.now();
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    if (next !== 'finished') return yieldDirector(store, claim, now + next.inMs, now);
    deleteReembed(store);
    finishJob(store, claim, now);
  });
  if (next === 'finished') context.logger.info({}, 'reembed_finished');
}

async function runSlice(context: DirectorContext, claim: HeldJob): Promise<Next> {
  const { store, live, configuredModels } = context.open();
  const record = findReembed(store);
  if (record === undefined) return 'finished';
  if (live === null) return { inMs: NOT_MINE_MS };
  switch (record.phase) {
    case 'embed':
      return configuredModels !== null && areSameModels(record.target, numbersOf(configuredModels))
        ? oweMemories(context, claim, record, configuredModels)
        : { inMs: NOT_MINE_MS };
    case 'link':
      return relinkMemories(context, claim);
    case 'drop':
      return dropOthers(context, claim, record);
  }
}

/** Fills the window of jobs; once a whole pass over the memories finds none that is owed a vector, the new model goes live. */
async function oweMemories(
  context: DirectorContext,
  claim: HeldJob,
  record: ReembedRecord,
  models: SectorModels,
): Promise<Next> {
  const { store } = context.open();
  const { waiting } = countReembedJobs(store);
  if (waiting > WINDOW_JOBS / 2) return { inMs: LOOK_AGAIN_MS };
  const { cursor } = record;
  const { seqs, upTo } = store.read(() =>
    listOwed(store, { models, after: cursor, within: LOOKED_AT, limit: WINDOW_JOBS - waiting }),
  );
  await commitInSlices(
    () => context.open().store,
    seqs,
    (current, memory) => {
      if (!holdsLease(current, claim)) return;
      insertReembedJob(current, { id: context.newId(), memory, now: context.clock.now() });
    },
  );
  const isAtEnd = upTo === Infinity;
  const owed = record.owed + seqs.length;
  const moved = { ...record, owed, cursor: isAtEnd ? (seqs.at(-1) ?? cursor) : upTo };
  if (!isAtEnd || waiting + seqs.length > 0) {
    putRecord(context, claim, moved);
    return { inMs: isAtEnd || seqs.length > 0 ? LOOK_AGAIN_MS : 0 };
  }
  if (owed > 0) putRecord(context, claim, { ...moved, cursor: 0, owed: 0, pass: record.pass + 1 });
  else goLive(context, claim, record, models);
  return { inMs: 0 };
}

/** The one commit at which queries and links turn to the new model. */
function goLive(context: DirectorContext, claim: HeldJob, record: ReembedRecord, models: SectorModels): void {
  const { store, liveModels } = context.open();
  const now = context.clock.now();
  const common = { ...record, cursor: 0, wentLiveAt: now, since: { at: now, done: 0 } };
  if (liveModels !== null && areSameModels(numbersOf(liveModels), record.target))
    return putRecord(context, claim, { ...common, phase: 'drop' });
  const putFit = prepareFit(store, distinctModels(models), now);
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    putLiveModels(store, record.target);
    putFit();
    for (const index of context.open().relinked.values()) index.clear();
    putReembed(store, { ...common, phase: 'link' });
  });
  context.logger.info({ model: record.target }, 'model_live');
}

/**
 * Links all memories as if they had been added one after the other: each looks among those before it, which an index of their own knows.
 * Links that are owed meanwhile by memories behind the cursor wait for it.
 */
async function relinkMemories(context: DirectorContext, claim: HeldJob): Promise<Next> {
  const deadline = performance.now() + SLICE_MS;
  while (performance.now() < deadline) {
    if (relinkNext(context, claim) === 'finished') return { inMs: 0 };
    await pause(BREATH_MS);
  }
  return { inMs: 0 };
}

function relinkNext(context: DirectorContext, claim: HeldJob): 'more' | 'finished' {
  const { store, liveModels, relinked } = context.open();
  const sources = liveSources(context);
  const record = findReembed(store);
  if (record?.phase !== 'link' || liveModels === null) return 'finished';
  const next = listMemoriesAfter(store, record.cursor, RELINKED_AT_ONCE);
  if (next.length === 0 || sources.size === 0) {
    store.write(() => {
      if (!holdsLease(store, claim)) return;
      if (sources.size > 0 && listMemoriesAfter(store, record.cursor, 1).length > 0) return;
      dropRelinkIndexes(store);
      putReembed(store, { ...record, phase: 'drop', cursor: 0 });
    });
    return sources.size === 0 ? 'finished' : 'more';
  }
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    for (const { memory, userNo } of next) {
      for (const model of distinctModels(liveModels)) {
        const own = findWholeVector(store, model, memory);
        if (own === undefined) continue;
        const { vectorNo, embedding, windowNo } = own;
        const index = relinked.get(model.modelNo);
        index?.remove([vectorNo]);
        index?.add([{ vectorNo, userNo, role: windowNo === MEAN_WINDOW ? 'mean' : 'whole', embedding }]);
      }
    }
  });
  const find = (memory: number) => {
    const model = linkModel({ store, liveModels }, memory);
    const index = relinked.get(model.modelNo)!;
    const threshold = sources.get(model.modelNo)?.embedder.waypointThreshold ?? Infinity;
    const nearest = findNearest({ store, space: spaceOf(model), index }, memory, (other) => other < memory);
    return { memory, modelNo: model.modelNo, nearest, threshold };
  };
  const found = next.map(({ memory }) => find(memory));
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    for (const one of found) {
      const { memory, modelNo, nearest } = one;
      const isCurrent =
        (nearest === undefined || areThere(store, nearest)) &&
        linkModel({ store, liveModels }, memory).modelNo === modelNo;
      const near = isCurrent ? one : find(memory);
      putNearest(store, memory, {
        nearest: near.nearest,
        threshold: near.threshold,
        now: context.clock.now(),
        models: liveModels,
      });
    }
    putReembed(store, { ...record, cursor: next.at(-1)!.memory });
  });
  return 'more';
}

/** A vector's number is never given again, so one that is there is the one that was measured. */
function areThere(store: Store, { vectorNos }: Neighbour): boolean {
  const statement = store.prepare('SELECT 1 FROM vectors WHERE vector_no = ?');
  return vectorNos.every((vectorNo) => statement.get(vectorNo) !== undefined);
}

/** Not before queries that began in the old space have ended. */
async function dropOthers(context: DirectorContext, claim: HeldJob, begun: ReembedRecord): Promise<Next> {
  const { config, clock } = context;
  const patience = config.OM_QUERY_EMBED_TIMEOUT_MS + config.OM_LLM_RERANK_TIMEOUT_MS;
  const leftMs = (begun.wentLiveAt ?? 0) + patience - clock.now();
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

/** What models hold that are in use, but not for the sectors of the memory: left by a change of the sectors' models. */
function dropSurplus(context: DirectorContext, claim: HeldJob, record: ReembedRecord): 'more' | 'finished' {
  const { store, liveModels, configuredModels, indexes } = context.open();
  const isSettled = liveModels !== null && configuredModels !== null;
  if (!isSettled || liveModels.length === 1 || !areSameModels(numbersOf(liveModels), numbersOf(configuredModels))) {
    return 'finished';
  }
  return store.write(() => {
    if (!holdsLease(store, claim)) return 'finished';
    const { vectors, upTo } = listSurplus(store, { models: liveModels, after: record.cursor, within: SURPLUS_WITHIN });
    const remove = store.prepare('DELETE FROM vectors WHERE vector_no = ?');
    for (const { vectorNo, modelNo } of vectors) {
      remove.run(vectorNo);
      indexes.get(modelNo)?.remove([vectorNo]);
    }
    if (upTo === Infinity) return 'finished';
    putReembed(store, { ...record, cursor: upTo });
    return 'more';
  });
}

function putRecord(context: DirectorContext, claim: HeldJob, record: ReembedRecord): void {
  const { store } = context.open();
  store.write(() => {
    if (holdsLease(store, claim)) putReembed(store, record);
  });
}
