import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { cancelReembed, startReembed, takeBackMemories } from '../commands/reembed.ts';
import type { Config } from '../config.ts';
import { EngineError } from '../errors.ts';
import type { Clock, Logger } from '../ports.ts';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { findNearest, linkModel, loadIndexes, putNearest, type Found, type Neighbour } from '../steps/link.ts';
import { liveSources, type StepContext } from '../steps/step-context.ts';
import { eraseCachedEmbedding } from '../store/embeddings.ts';
import { finishJob, holdsLease, type HeldJob } from '../store/jobs.ts';
import {
  areSameModels,
  distinctModels,
  dropModelSlice,
  listStrayModels,
  numbersOf,
  putLiveModels,
  type SectorModelNumbers,
  type SectorModels,
} from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import {
  countGivenUp,
  countReembedJobs,
  countUpTo,
  deleteReembed,
  findReembed,
  findTending,
  insertReembedJob,
  listMemoriesAfter,
  listOwed,
  listSurplus,
  putReembed,
  putTending,
  yieldDirector,
  type ReembedRecord,
} from '../store/reembed.ts';
import { deleteVector, hasVector } from '../store/vectors.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { prepareFit } from './calibrate-scores.ts';

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
/** A model goes live unasked that refuses at most one memory of so many, or a single one of two or more. */
const REFUSED_ONE_OF = 100;
/** Whoever looks after a file by other settings is gone if it has said nothing for so long: it is asked every quarter of a minute. */
const SILENT_MS = 300_000;
const TENDED_AGAIN_MS = 30_000;

interface TendContext {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
}

/**
 * Gives up what the settings do not ask for any more, and begins by itself what costs nothing: to change the model, or to fill the gaps that
 * other settings left. Nothing, while another process looks after the file by other settings: the two would undo each other's work.
 */
export async function tendReembed(context: TendContext): Promise<void> {
  const { open, config, clock } = context;
  const { store, liveModels, configuredModels } = open();
  // The models of its settings went with a change to others while it had the file open.
  if (liveModels !== null && configuredModels === null) return;
  const target = configuredModels && numbersOf(configuredModels);
  const last = findTending(store);
  const isNew = last === undefined || !isFor(last.target, target);
  if (last !== undefined && isNew && !isSoleWorker(config) && Math.abs(clock.now() - last.at) < SILENT_MS) return;

  const found = findReembed(store);
  const isForAnother = found?.phase === 'embed' && !isFor(found.target, target);
  if (isForAnother) giveUp(open, target);
  if (target !== null && liveModels !== null && (found === undefined || isForAnother) && startsByItself(config)) {
    const isOther = !areSameModels(numbersOf(liveModels), target);
    if (isOther || (isNew && (await findsGap(context)))) startUnlessBegun(context, target);
  }
  noteTending(open().store, target, clock.now());
}

function isFor(target: SectorModelNumbers | null, settings: SectorModelNumbers | null): boolean {
  return target === null || settings === null ? target === settings : areSameModels(target, settings);
}

/** Without queues there is one worker, so that whatever other settings wrote is of the past. */
function isSoleWorker({ REDIS_URL }: Config): boolean {
  return REDIS_URL === undefined;
}

function giveUp(open: () => OpenTenant, target: SectorModelNumbers | null): void {
  const { store } = open();
  store.write(() => {
    const record = findReembed(store);
    if (record?.phase === 'embed' && !isFor(record.target, target)) cancelReembed({ store });
  });
}

function startUnlessBegun({ open, clock }: TendContext, target: SectorModelNumbers): void {
  const { store } = open();
  store.write(() => {
    if (findReembed(store) === undefined) startReembed({ store, now: clock.now(), newId: uuidv7 }, { target });
  });
}

/** Whether a memory has no vectors of the configured models and nobody sees to it; in slices. */
async function findsGap({ open, signal, onPause }: TendContext): Promise<boolean> {
  for (let after = 0; after !== Infinity;) {
    const { store, configuredModels: models } = open();
    if (models === null) return false;
    const { seqs, upTo } = store.read(() => listOwed(store, { models, after, within: LOOKED_AT, limit: 1 }));
    if (seqs.length > 0) return true;
    after = upTo;
    await pause(BREATH_MS, undefined, { signal });
    onPause?.();
  }
  return false;
}

/** Seldom enough to cost nothing, often enough to be heard within `SILENT_MS`. */
function noteTending(store: Store, target: SectorModelNumbers | null, now: number): void {
  const last = findTending(store);
  if (last !== undefined && isFor(last.target, target) && Math.abs(now - last.at) < TENDED_AGAIN_MS) return;
  store.write(() => putTending(store, { target, at: now }));
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
      if (configuredModels === null || !areSameModels(record.target, numbersOf(configuredModels))) {
        return { inMs: NOT_MINE_MS };
      }
      noteTending(store, record.target, context.clock.now());
      return oweMemories(context, claim, record, configuredModels);
    case 'link':
      return relinkMemories(context, claim);
    case 'drop':
      return dropOthers(context, claim, record);
  }
}

/**
 * Fills the window of jobs; once a whole pass over the memories finds none that is owed a vector, the new model goes live.
 * @throws EngineError `invalid` where the model refuses more than goes live unasked
 */
async function oweMemories(
  context: DirectorContext,
  claim: HeldJob,
  record: ReembedRecord,
  models: SectorModels,
): Promise<Next> {
  const { store } = context.open();
  stopIfRefused(context, claim, record);
  const waiting = countReembedJobs(store);
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

/**
 * A model that refuses more than a few texts is most likely misconfigured: once it were live, the others would be found by their words
 * alone, and the vectors that they had would go. Looked for all along, so that such a model is not asked about every memory first.
 */
function stopIfRefused(context: DirectorContext, claim: HeldJob, record: ReembedRecord): void {
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
    `the new model refused ${refused} of ${memories} memories and does not go live: \`cairn jobs --state dead\` says why, ` +
      '`cairn reembed` tries them again, `cairn reembed --without-refused` goes on without their vectors',
  );
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
    putReembed(store, { ...common, phase: 'link' });
  });
  context.logger.info({ model: record.target }, 'model_live');
}

/**
 * Links all memories as if they had been added one after the other: each looks among those before it.
 * Links that are owed meanwhile by memories behind the cursor wait for it.
 */
async function relinkMemories(context: DirectorContext, claim: HeldJob): Promise<Next> {
  const deadline = performance.now() + SLICE_MS;
  while (performance.now() < deadline) {
    if ((await relinkNext(context, claim)) === 'finished') return { inMs: 0 };
    await pause(BREATH_MS);
  }
  return { inMs: 0 };
}

async function relinkNext(context: DirectorContext, claim: HeldJob): Promise<'more' | 'finished'> {
  await loadIndexes(context.open);
  const { store, liveModels, indexes } = context.open();
  const sources = liveSources(context);
  const record = findReembed(store);
  if (record?.phase !== 'link' || liveModels === null) return 'finished';
  const next = listMemoriesAfter(store, record.cursor, RELINKED_AT_ONCE);
  if (next.length === 0 || sources.size === 0) {
    store.write(() => {
      if (!holdsLease(store, claim)) return;
      if (sources.size > 0 && listMemoriesAfter(store, record.cursor, 1).length > 0) return;
      putReembed(store, { ...record, phase: 'drop', cursor: 0 });
    });
    return sources.size === 0 ? 'finished' : 'more';
  }
  const searches = next.map((memory) => ({ memory, upTo: next.at(-1)! }));
  const found = findNearest({ store, liveModels, indexes }, searches, (other, memory) => other < memory);
  store.write(() => {
    if (!holdsLease(store, claim)) return;
    // What changed since it was searched is searched again by the next look.
    if (!found.every((one) => isCurrent({ store, liveModels }, one))) return;
    for (const { memory, modelNo, nearest } of found) {
      const threshold = sources.get(modelNo)?.embedder.waypointThreshold ?? Infinity;
      putNearest(store, memory, { nearest, threshold, now: context.clock.now(), models: liveModels });
    }
    putReembed(store, { ...record, cursor: next.at(-1)! });
  });
  return 'more';
}

function isCurrent(tenant: Pick<OpenTenant, 'store' | 'liveModels'>, { memory, modelNo, nearest }: Found): boolean {
  const isThere = nearest === undefined || areThere(tenant.store, nearest);
  return isThere && linkModel(tenant, memory).modelNo === modelNo;
}

/** A vector's number is never given again, so one that is there is the one that was measured. */
function areThere(store: Store, { vectorNos }: Neighbour): boolean {
  return vectorNos.every((vectorNo) => hasVector(store, vectorNo));
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
    for (const { vectorNo, modelNo } of vectors) {
      const textHash = deleteVector(store, vectorNo);
      // The cache is found through vectors: a later erasure of the memory could not reach it.
      if (textHash !== null) eraseCachedEmbedding(store, modelNo, textHash);
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
