import { changeMemory, endsTooMany } from '../commands/patch.ts';
import { markMetadata } from '../privacy/screen-memory.ts';
import { listParts } from '../store/chunks.ts';
import type { GenerationRow } from '../store/document-generations.ts';
import { holdsLease } from '../store/job-leases.ts';
import type { DocumentClaim } from '../store/jobs.ts';
import { readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import type { Metadata, SensitiveKind } from '../types.ts';
import { commitInSlices } from './commit-in-slices.ts';
import { writeContextOf, type StepContext } from './step-context.ts';

/**
 * Gives memories that a document kept from its earlier reading the fields that its caller now states (such as tags and
 * metadata), rewrites their indexed words, and keeps revisions of what is replaced. A memory that supersedes over 200
 * others keeps its event time, since all of them would end anew. This happens after the commit by which queries find
 * the document, in short slices, as rewriting the words of a long document takes seconds. Repeating it changes nothing,
 * so it may be interrupted at any time.
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
      const changed = changedLabels(before, generation);
      // The document is shown already, so that a part whose start cannot move keeps its time and does not fail the job.
      const columns = endsTooMany(store, before, changed) ? withoutTime(changed) : changed;
      changeMemory(writeContextOf(context), before, { columns, status: undefined });
    },
  );
}

function withoutTime(columns: MemoryColumns): MemoryColumns {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => !name.startsWith('event_time')));
}

/** Returns the columns in which a memory differs from the fields of its document. */
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

/**
 * Returns the metadata of a document together with the kinds that mark the memory's own sensitive values. Both are
 * JSON.
 * @param before metadata of the memory
 * @param metadata metadata of the document
 */
function keepMarks(before: string, metadata: string): string {
  const { sensitive } = JSON.parse(before) as { sensitive?: unknown };
  if (!Array.isArray(sensitive)) return metadata;
  return JSON.stringify(markMetadata(JSON.parse(metadata) as Metadata, sensitive as SensitiveKind[]));
}
