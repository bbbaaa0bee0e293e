import { changeMemory } from '../commands/patch.ts';
import { listParts } from '../store/chunks.ts';
import type { GenerationRow } from '../store/document-generations.ts';
import { holdsLease } from '../store/job-leases.ts';
import type { DocumentClaim } from '../store/jobs.ts';
import { readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { writeContextOf, type StepContext } from './step-context.ts';

/**
 * Gives kept parts what the caller now says of their document, with their words and a revision of what is replaced.
 * This comes after the commit that shows the document, in short slices, as the words of a long document take seconds.
 * Doing it again changes nothing, so it may be broken off anywhere.
 */
export async function relabelParts(
  context: StepContext,
  claim: DocumentClaim,
  generation: GenerationRow,
): Promise<void> {
  const { open } = context;
  await commitInSlices(
    () => open().store,
    listParts(open().store, generation.generation_no),
    (store, part) => {
      const [before] = readMemoryRows(store, [part]);
      if (before === undefined || !holdsLease(store, claim)) return;
      changeMemory(writeContextOf(context), before, { columns: changedLabels(before, generation), status: undefined });
    },
  );
}

/** Returns the columns in which a part differs from what is said of its document. */
function changedLabels(before: MemoryRow, generation: GenerationRow): MemoryColumns {
  const { session_id, type, tags, expires_at, event_time: stated } = generation;
  const metadata = keepMarks(before.metadata, generation.metadata);
  const event_time = stated ?? before.created_at;
  const labels = { session_id, type, tags, metadata, expires_at, event_time };
  const changed: MemoryColumns = Object.fromEntries(
    Object.entries(labels).filter(([name, value]) => value !== before[name as keyof typeof labels]),
  );
  return changed.event_time === undefined ? changed : { ...changed, event_time_given: stated === null ? 0 : 1 };
}

/** Returns the metadata of a document with what marks a part's sensitive values. Both are JSON. */
function keepMarks(before: string, metadata: string): string {
  const { sensitive } = JSON.parse(before) as { sensitive?: unknown };
  return sensitive === undefined ? metadata : JSON.stringify({ ...(JSON.parse(metadata) as object), sensitive });
}
