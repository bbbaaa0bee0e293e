/** Decides, by the settings, whether a change of a file's embedding model begins automatically or is cancelled. */

import { setTimeout as pause } from 'node:timers/promises';
import { v7 as uuidv7 } from 'uuid';
import { cancelReembed, type ClearedRefusals, clearRefusals, startReembed, stopReembed } from '../commands/reembed.ts';
import { queueServerOf, type Config } from '../config.ts';
import type { Clock } from '../ports.ts';
import { areSameModels, numbersOf, type SectorModelNumbers } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import { findReembed, findTending, listUnembedded, putTending } from '../store/reembed.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';

/** Greatest number of memories that one read examines for missing vectors. */
export const LOOKED_AT = 20_000;
/** Pause between two slices of work (ms), in which other connections can write. */
export const BREATH_MS = 2;
/**
 * Time (ms) after which a process that looks after a file with other settings counts as gone. A process that runs
 * renews its note every 30 s; in PostgreSQL at least every 120 s (`TENDED_MOST_MS`) while nothing is written.
 */
const SILENT_MS = 300_000;
/**
 * Shortest time between two notes in a file that a process looks after it (ms): rare enough to cost little, and well
 * below `SILENT_MS`.
 */
const TENDED_AGAIN_MS = 30_000;

interface TendContext {
  readonly open: () => OpenTenant;
  readonly config: Config;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
  /**
   * Called after a commit that only made a note, on which the work of no schedule depends; see `MaintenanceContext`.
   */
  readonly onNote?: (() => void) | undefined;
}

/**
 * Cancels a change of the embedding model whose target the settings no longer name, unless the target is live already.
 * Then, if `OM_REEMBED` allows it, it begins a change to the models of the settings: when other models are live, or
 * when some memories lack vectors of these models and these settings are new to the file. It does nothing while another
 * process with other settings looks after the file, as the two would undo each other's work.
 */
export async function tendReembed(context: TendContext): Promise<void> {
  const { open, config, clock } = context;
  const { liveModels, configuredModels, last, record } = readState(open());
  // A change to other models deleted the configured ones while this process had the file open.
  if (liveModels !== null && configuredModels === null) return;
  const target = configuredModels && numbersOf(configuredModels);
  const isNew = last === undefined || !isFor(last.target, target);
  if (last !== undefined && isNew && !isSoleWorker(config) && Math.abs(clock.now() - last.at) < SILENT_MS) return;

  const isForAnother = record?.phase === 'embed' && !isFor(record.target, target);
  if (isForAnother) await giveUp(context, target);
  if (target !== null && liveModels !== null && (record === undefined || isForAnother) && startsByItself(config)) {
    const isOther = !areSameModels(numbersOf(liveModels), target);
    if (isOther || (isNew && (await findsGap(context)))) await startUnlessBegun(context, target);
  }
  if (noteTending(open().store, target, clock.now())) context.onNote?.();
}

/** Reads what decides about a change of the model; in PostgreSQL on one snapshot, so that round trips are shared. */
function readState(tenant: OpenTenant) {
  const { store } = tenant;
  const read = () => ({
    liveModels: tenant.liveModels,
    configuredModels: tenant.configuredModels,
    last: findTending(store),
    record: findReembed(store),
  });
  const { ahead } = store;
  if (ahead === null) return read();
  return store.read(() => {
    ahead.readSpeculatively(
      () => findTending(store),
      () => findReembed(store),
      () => tenant.liveModels,
      () => tenant.configuredModels,
    );
    return read();
  });
}

function isFor(target: SectorModelNumbers | null, settings: SectorModelNumbers | null): boolean {
  return target === null || settings === null ? target === settings : areSameModels(target, settings);
}

/**
 * Whether this is the only worker of the tenant, as it is without `REDIS_URL` and `OM_DATABASE_URL`. If the file then
 * has a note of a process with other settings, that process no longer runs.
 */
function isSoleWorker(config: Config): boolean {
  return queueServerOf(config) === null;
}

async function giveUp(context: TendContext, target: SectorModelNumbers | null): Promise<void> {
  await inSlices(context, (store) => {
    const record = findReembed(store);
    if (record?.phase !== 'embed' || isFor(record.target, target)) return true;
    const isStopped = stopReembed({ store });
    if (isStopped) cancelReembed({ store });
    return isStopped;
  });
}

async function startUnlessBegun(context: TendContext, target: SectorModelNumbers): Promise<void> {
  const { open, clock } = context;
  const since = clock.now();
  let cleared: ClearedRefusals = { isDone: false, after: null };
  await inSlices(context, (store) => {
    if (findReembed(store) !== undefined) return true;
    cleared = clearRefusals({ store, now: clock.now() }, { target, since, after: cleared.after });
    return cleared.isDone;
  });
  const { store } = open();
  store.write(() => {
    if (findReembed(store) === undefined) startReembed({ store, now: clock.now(), newId: uuidv7 }, { target });
  });
}

/** Writes one slice after the other, each in a commit of its own, until `write` returns true. */
async function inSlices({ open, signal, onPause }: TendContext, write: (store: Store) => boolean): Promise<void> {
  for (;;) {
    const { store } = open();
    if (store.write(() => write(store))) return;
    await pause(BREATH_MS, undefined, { signal });
    onPause?.();
  }
}

/**
 * Whether any memory lacks vectors of the configured models of its sectors and has no job for them. It reads in slices.
 */
async function findsGap({ open, signal, onPause }: TendContext): Promise<boolean> {
  for (let after = 0; after !== Infinity;) {
    const { store, configuredModels: models } = open();
    if (models === null) return false;
    const { memoryNos, upTo } = store.read(() => listUnembedded(store, { models, after, within: LOOKED_AT, limit: 1 }));
    if (memoryNos.length > 0) return true;
    after = upTo;
    await pause(BREATH_MS, undefined, { signal });
    onPause?.();
  }
  return false;
}

/**
 * Records in the file that a process with these settings looks after it, unless such a note is less than 30 s old. It
 * uses a write transaction of its own.
 * @param target models that the settings name; null with `OM_EMBEDDINGS=none`
 * @param now Unix ms
 * @returns whether it wrote the note
 */
export function noteTending(store: Store, target: SectorModelNumbers | null, now: number): boolean {
  const last = findTending(store);
  if (last !== undefined && isFor(last.target, target) && Math.abs(now - last.at) < TENDED_AGAIN_MS) return false;
  store.write(() => putTending(store, { target, at: now }));
  return true;
}

/**
 * Whether a change of the model begins automatically: with `OM_REEMBED=auto`; if that is not set, with
 * `OM_EMBEDDINGS=synthetic` or `local`, where it costs nothing.
 */
function startsByItself({ OM_REEMBED, OM_EMBEDDINGS }: Config): boolean {
  if (OM_REEMBED !== undefined) return OM_REEMBED === 'auto';
  return OM_EMBEDDINGS === 'synthetic' || OM_EMBEDDINGS === 'local';
}
