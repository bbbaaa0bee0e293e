import { changeMemory } from '../commands/patch.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { screenFields } from '../privacy/screen-memory.ts';
import { startScreening } from '../privacy/screening.ts';
import { keptHash } from '../store/duplicates.ts';
import { listMemoryNosAfter, readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { deleteRevisions } from '../store/revisions.ts';
import { contentHash } from '../text/content-hash.ts';
import type { Metadata, SensitiveKind } from '../types.ts';

/** Memories that are read at once. */
const SLICE = 100;

/** A memory in which a scan found sensitive values. It names kinds, never values. */
export interface ScannedMemory {
  readonly id: string;
  readonly memoryNo: number;
  /** Whether the memory is a part of a document, which is not changed by itself. */
  readonly isPart: boolean;
  /** Number of values by kind. */
  readonly counts: Readonly<Partial<Record<SensitiveKind, number>>>;
  /** The columns in which the memory would differ if its values were redacted. */
  readonly redacted: MemoryColumns;
}

/**
 * Looks through stored memories for sensitive values, in the order in which they were added.
 * @param options.userId only the memories of this user; undefined for all
 * @param options.onProgress called after each slice with the number of memories that were read
 */
export async function* scanMemories(
  store: Store,
  { userId, onProgress }: { readonly userId: string | undefined; readonly onProgress: (done: number) => void },
): AsyncGenerator<ScannedMemory> {
  let done = 0;
  for (let after = 0; ;) {
    const memoryNos = listMemoryNosAfter(store, after, SLICE);
    const last = memoryNos.at(-1);
    if (last === undefined) return;
    for (const row of readMemoryRows(store, memoryNos)) {
      if (userId !== undefined && row.user_id !== userId) continue;
      const found = await scanRow(row);
      if (Object.keys(found.counts).length > 0) yield found;
    }
    onProgress((done += memoryNos.length));
    after = last;
  }
}

/** Redacts a memory and erases its earlier versions, which hold the values too. Parts of a document stay. */
export function redactMemory(context: WriteContext, { memoryNo, isPart, redacted }: ScannedMemory): void {
  if (isPart) return;
  const { store } = context;
  store.write(() => {
    const [before] = readMemoryRows(store, [memoryNo]);
    if (before === undefined) return;
    changeMemory(context, before, { columns: redacted, status: undefined });
    deleteRevisions(store, memoryNo);
  });
}

async function scanRow(row: MemoryRow): Promise<ScannedMemory> {
  const screening = startScreening({ secrets: 'redact', personal: 'redact' }, null);
  const fields = await screenFields(screening, {
    content: row.content,
    title: row.title,
    gist: row.gist,
    tags: JSON.parse(row.tags) as string[],
    files: JSON.parse(row.files) as string[],
    entities: JSON.parse(row.entities) as string[],
    metadata: JSON.parse(row.metadata) as Metadata,
  });
  const columns = {
    content: fields.content,
    title: fields.title,
    gist: fields.gist,
    tags: JSON.stringify(fields.tags),
    files: JSON.stringify(fields.files),
    entities: JSON.stringify(fields.entities),
    metadata: JSON.stringify(fields.metadata),
  };
  const changed = Object.entries(columns).filter(([name, value]) => value !== row[name as keyof typeof columns]);
  const redacted: MemoryColumns = Object.fromEntries(changed);
  return {
    id: row.id,
    memoryNo: row.memoryNo,
    isPart: row.generation_no !== null,
    counts: screening.report().redacted,
    redacted:
      redacted.content === undefined ? redacted : { ...redacted, content_hash: keptHash(contentHash(fields.content)) },
  };
}
