import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { failpoint } from '../failpoint.ts';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { hasCopies, listModels, purgeCopies } from '../store/embeddings.ts';
import { findInfo, putInfo } from '../store/store-info.ts';
import { coarsenVector, lastVectorNo, listFiner } from '../store/vectors.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import { BREATH_MS } from './tend-reembed.ts';

/** The parts that `coarsenVectors` uses. */
export interface CoarsenContext {
  /** Returns the tenant's file on a connection that may write. It is called anew after each await. */
  readonly open: () => OpenTenant;
  readonly config: Config;
  /** Stops the work between two slices when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Called between two slices. */
  readonly onPause?: (() => void) | undefined;
}

/** Greatest number of vector numbers that are checked before the progress is stored again. */
const LOOKED_AT = 20_000;
/**
 * Number of vectors that are written before the next pause, in which other connections can write and the schedule's
 * claim is renewed.
 */
const WRITTEN_AT_ONCE = 200;
/** Greatest number of copies of vectors that one commit deletes. */
const COPIES_AT_ONCE = 50;

/**
 * Rewrites vectors of providers and local models that are stored in a finer precision than `OM_VECTOR_PRECISION` in
 * that precision, and deletes the copies of vectors that earlier versions kept as a cache, in short commits. Each
 * commit leaves whole vectors, so the work can be stopped at any time and continues from there. For each precision, the
 * file stores the number up to which no vector is finer. That stays true, since vectors are never made finer and their
 * numbers are never given twice, and so processes with different settings cannot undo each other's work.
 * @throws AbortError if `signal` is aborted
 */
export async function coarsenVectors(context: CoarsenContext): Promise<void> {
  const { open, config } = context;
  if (!listModels(open().store).some(({ encoding }) => encoding === 'float32')) return;
  const precision = config.OM_VECTOR_PRECISION;
  const note = `vectors_in_${precision}`;
  for (;;) {
    const { store } = open();
    const after = Number(findInfo(store, note) ?? 0);
    if (after >= lastVectorNo(store)) break;
    const { vectorNos, upTo } = listFiner(store, { precision, after, within: LOOKED_AT });
    for (let at = 0; at < vectorNos.length; at += WRITTEN_AT_ONCE) {
      await commitInSlices(
        () => open().store,
        vectorNos.slice(at, at + WRITTEN_AT_ONCE),
        (current, vectorNo) => coarsenVector(current, vectorNo, precision),
      );
      await failpoint('during-coarsen');
      await breathe(context);
    }
    const current = open().store;
    current.write(() => putInfo(current, note, String(upTo)));
    await breathe(context);
  }
  while (hasCopies(open().store)) {
    const { store } = open();
    store.write(() => purgeCopies(store, COPIES_AT_ONCE));
    await breathe(context);
  }
}

async function breathe({ signal, onPause }: CoarsenContext): Promise<void> {
  await pause(BREATH_MS, undefined, { signal });
  onPause?.();
}
