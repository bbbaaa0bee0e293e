import { addToErasure, closeErasure as close } from '../store/erasures.ts';
import type { MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { iterateSnapshots } from '../store/revisions.ts';
import { parseStored } from '../store/stored-json.ts';
import { gatherErasedWords, readingsOfJson } from '../text/erased-words.ts';
import type { OpenErasure } from '../types.ts';
import type { ErasureNotes, WriteContext } from './write-context.ts';

/**
 * Greatest length of the beginning of one erased text, in UTF-16 code units, whose words are hashed for the receipt of
 * the erasure; the receipt leaves out the rest, since every tenant's writes wait for the commit.
 */
export const HASHED_OF_TEXT = 16 * 1024;
/**
 * Greatest length of all texts together whose words one commit hashes for the receipt, in UTF-16 code units (49,152).
 */
const HASHED_OF_COMMIT = 3 * HASHED_OF_TEXT;

/**
 * Wraps a command that erases memories, so that it also writes a receipt, in the same transaction: the ids of the
 * erased memories, and salted hashes of the telling words and of the phrases (`gatherErasedWords`) of their texts, and
 * of the names of documents. Of long texts
 * only the beginnings are hashed, and of many texts the first (`HASHED_OF_TEXT`, `HASHED_OF_COMMIT`). The input names
 * the receipt as `erasure`; without it, the command runs unchanged.
 */
export function recorded<Input extends object, Output>(
  erase: (context: WriteContext, input: Input) => Output,
): (context: WriteContext, input: Input & { readonly erasure?: OpenErasure | undefined }) => Output {
  return (context, { erasure, ...input }) => {
    if (erasure === undefined) return erase(context, input as unknown as Input);
    const { store, now, writtenBy: keyId } = context;
    const erased = gatherErasedWords(erasure.salt);
    const ids: string[] = [];
    let left = HASHED_OF_COMMIT;
    const note = (texts: Iterable<string>) => {
      for (const text of texts) {
        if (left <= 0) return;
        const hashed = text.slice(0, Math.min(HASHED_OF_TEXT, left));
        erased.add(hashed);
        left -= hashed.length;
      }
    };
    const notes: ErasureNotes = {
      id: erasure.id,
      names: note,
      memory(row) {
        ids.push(row.id);
        note(textsOf(store, row));
      },
    };
    const output = erase({ ...context, erasing: notes }, input as unknown as Input);
    addToErasure(store, erasure, { ...erased.hashes(), ids }, { keyId, now });
    return output;
  };
}

/**
 * Yields the texts of a memory: its fields and stated entities, its type, and the namespace and key of an item, then
 * what its newest changes replaced, newest first (`iterateSnapshots`). Empty fields are left out. Fields in JSON are
 * read as `readingsOfJson` does.
 */
function* textsOf(store: Store, row: MemoryRow): Generator<string> {
  const { content, title, gist, entities, tags, files, session_id: session, external_id: key, namespace, type } = row;
  const own = [content, title, gist, session, key, namespace, type];
  yield* own.filter((text): text is string => text !== null && text !== '');
  for (const json of [entities, tags, files, statedMetadata(row), row.value])
    if (json !== null && json !== '[]' && json !== '{}') yield* readingsOfJson(json);
  for (const snapshot of iterateSnapshots(store, row.memoryNo)) yield* readingsOfJson(snapshot);
}

/**
 * Fields of the metadata of a consolidated memory that name the consolidation and the method by which its text was
 * made.
 */
const OF_CONSOLIDATION: readonly string[] = ['consolidation', 'consolidation_method'];

/**
 * Returns the metadata of a memory as JSON; for a consolidated memory, without the fields that Cairn wrote. The words
 * of those fields are also in the log of consolidations and in ids of receipts, so a search for erased text would find
 * them there.
 */
function statedMetadata({ metadata }: MemoryRow): string {
  if (!metadata.includes('"consolidation_method"')) return metadata;
  const fields = Object.entries(parseStored(metadata) as object);
  return JSON.stringify(Object.fromEntries(fields.filter(([name]) => !OF_CONSOLIDATION.includes(name))));
}

/**
 * Names of the places from which every delete removes its memories (`eraseMemories`). Each receipt lists them as
 * `searched`.
 */
const SEARCHED = [
  'memories',
  'revisions',
  'word index',
  'vectors and their indexes',
  'links',
  'entities',
  'context of neighbours',
  'reflections',
  'cached embeddings',
  'stored replies',
  'jobs',
  'recall log',
  'uploads',
] as const;

/**
 * Closes the receipt of an erasure: adds the hashes of `names`, the conditions of the delete (`by`, names of filter
 * fields) and the counts of what was erased. Nothing can be added to the receipt afterwards.
 */
export function closeErasure(
  { store, now, writtenBy: keyId }: WriteContext,
  {
    erasure,
    by,
    counts,
    names,
  }: {
    readonly erasure: OpenErasure;
    readonly by: readonly string[];
    readonly counts: Readonly<Record<string, number>>;
    /** Names of what was erased, such as that of a user or of a file; only salted hashes of them are stored. */
    readonly names: readonly string[];
  },
): void {
  const erased = gatherErasedWords(erasure.salt);
  names.forEach((name) => erased.add(name));
  addToErasure(store, erasure, { ...erased.hashes(), ids: [] }, { keyId, now });
  close(store, erasure, { by, counts, searched: SEARCHED }, { keyId, now });
}
