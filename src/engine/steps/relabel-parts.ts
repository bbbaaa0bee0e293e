import { changeMemory } from '../commands/patch.ts';
import { listParts, type GenerationRow } from '../store/documents.ts';
import { holdsLease, type DocumentClaim } from '../store/jobs.ts';
import { readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import { commitInSlices } from './commit-in-slices.ts';
import type { StepContext } from './step-context.ts';

/**
 * What the caller says of a document is said of each of its parts: those that were kept take it over, with a revision of what it
 * replaces and their words. Afterwards rather than in the commit that shows the document, as the words of a long one take seconds, and in
 * short steps. Doing it again changes nothing, so that it may be broken off anywhere.
 */
export async function relabelParts(
  { open, config, newId, clock }: StepContext,
  claim: DocumentClaim,
  generation: GenerationRow,
): Promise<void> {
  await commitInSlices(
    () => open().store,
    listParts(open().store, generation.generation_no),
    (store, part) => {
      const [before] = readMemoryRows(store, [part]);
      if (before === undefined || !holdsLease(store, claim)) return;
      const { indexes } = open();
      const context = { store, indexes, config, newId, now: clock.now(), backlog: { atMost: 0 } };
      changeMemory(context, before, { columns: changedLabels(before, generation), status: undefined });
    },
  );
}

function changedLabels(before: MemoryRow, generation: GenerationRow): MemoryColumns {
  const { session_id, type, tags, metadata, expires_at, event_time: stated } = generation;
  const event_time = stated ?? before.created_at;
  const labels = { session_id, type, tags, metadata, expires_at, event_time };
  const changed: MemoryColumns = Object.fromEntries(
    Object.entries(labels).filter(([name, value]) => value !== before[name as keyof typeof labels]),
  );
  return changed.event_time === undefined ? changed : { ...changed, event_time_given: stated === null ? 0 : 1 };
}
