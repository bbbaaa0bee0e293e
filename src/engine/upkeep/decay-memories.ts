import { decayLambdaOf } from '../dynamics.ts';
import { reanchorLambda, refreshSalience, sliceEnd } from '../store/dynamics.ts';
import { archiveFaded } from '../store/revisions.ts';
import { SECTORS } from '../types.ts';
import { type MaintenanceContext, yieldTurn } from './maintenance-context.ts';

/** Greatest number of memories whose salience one commit refreshes. */
const DECAY_SLICE = 2_000;
/** Greatest number of memories that one commit archives; small, as each row is rewritten. */
const ARCHIVE_SLICE = 100;

/**
 * Runs the decay job over all memories, in short commits. It refreshes the cached salience, starts the decay of a
 * memory anew if the settings changed its λ, and archives memories that faded below `OM_ARCHIVE_BELOW`. Salience
 * follows from the stored start of the decay and the time, so running the job again changes nothing.
 * @returns the number of memories whose cached salience was computed again, whether or not it changed
 */
export async function decayMemories(context: MaintenanceContext): Promise<number> {
  const { config, clock } = context;
  let changed = 0;
  for (let after = 0; ;) {
    const { store } = context.open();
    const now = clock.now();
    const slice = store.write(() => {
      const last = sliceEnd(store, after, DECAY_SLICE);
      if (last === undefined) return undefined;
      for (const sector of SECTORS) {
        reanchorLambda(store, {
          afterMemoryNo: after,
          last,
          sector,
          decayLambda: decayLambdaOf(sector, config.OM_DECAY_LAMBDA),
          now,
        });
      }
      return refreshSalience(store, after, DECAY_SLICE, now);
    });
    if (slice === undefined) break;
    changed += slice.changed;
    await archiveSlice(context, { afterMemoryNo: after, last: slice.last });
    after = slice.last;
    await yieldTurn(context);
  }
  context.metrics.decayedMemories.inc(changed);
  context.logger.info({ changed }, 'decay_done');
  return changed;
}

/**
 * Archives the faded memories of a slice, above `afterMemoryNo` up to `last`, in short commits; none if
 * `OM_ARCHIVE_BELOW` is 0.
 */
async function archiveSlice(
  context: MaintenanceContext,
  slice: { readonly afterMemoryNo: number; readonly last: number },
): Promise<void> {
  const { open, config, clock, metrics } = context;
  const step = { ...slice, below: config.OM_ARCHIVE_BELOW, limit: ARCHIVE_SLICE };
  if (config.OM_ARCHIVE_BELOW === 0) return;
  for (let archived = Infinity; archived > 0;) {
    const { store } = open();
    archived = store.write(() => archiveFaded(store, { ...step, now: clock.now() }));
    metrics.archivedMemories.inc(archived);
    if (archived > 0) await yieldTurn(context);
  }
}
