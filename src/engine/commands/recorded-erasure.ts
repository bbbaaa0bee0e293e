import { addToErasure, closeErasure as close } from '../store/erasures.ts';
import type { MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { listSnapshots } from '../store/revisions.ts';
import { gatherErasedWords } from '../text/erased-words.ts';
import type { OpenErasure } from '../types.ts';
import type { ErasureNotes, WriteContext } from './write-context.ts';

/**
 * Makes a command that erases also write, in the same transaction, what it erased into the receipt that its input
 * names: ids, and salted hashes of words. If the input names no receipt, it is the command as it is.
 */
export function recorded<Input extends object, Output>(
  erase: (context: WriteContext, input: Input) => Output,
): (context: WriteContext, input: Input & { readonly erasure?: OpenErasure | undefined }) => Output {
  return (context, { erasure, ...input }) => {
    if (erasure === undefined) return erase(context, input as unknown as Input);
    const { store, now, writtenBy: keyId } = context;
    const erased = gatherErasedWords(erasure.salt);
    const ids: string[] = [];
    const notes: ErasureNotes = {
      memory(row) {
        ids.push(row.id);
        for (const text of textsOf(store, row)) erased.add(text);
      },
    };
    const output = erase({ ...context, erasing: notes }, input as unknown as Input);
    addToErasure(store, erasure, { ...erased.hashes(), ids }, { keyId, now });
    return output;
  };
}

/** Lists what a memory says, now and in its earlier versions, and what it is named. */
function textsOf(store: Store, row: MemoryRow): string[] {
  const { content, title, gist, entities, tags, files, metadata, session_id: session, external_id: external } = row;
  const { value } = row;
  const before = listSnapshots(store, row.memoryNo);
  const named = [session, external ?? '', value ?? ''];
  return [content, title, gist, entities, tags, files, metadata, ...named, ...before].filter(
    (text) => text !== '' && text !== '[]' && text !== '{}',
  );
}

/** What is searched for traces of erased memories by every delete (`eraseMemories`). */
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

/** Ends a receipt. */
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
    /** Names that went with what was erased, such as that of a user or of a file. */
    readonly names: readonly string[];
  },
): void {
  const erased = gatherErasedWords(erasure.salt);
  names.forEach((name) => erased.add(name));
  addToErasure(store, erasure, { ...erased.hashes(), ids: [] }, { keyId, now });
  close(store, erasure, { by, counts, searched: SEARCHED }, { keyId, now });
}
