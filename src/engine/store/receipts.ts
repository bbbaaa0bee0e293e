import { EngineError } from '../errors.ts';
import { contentHash, hashOfPieces } from '../text/content-hash.ts';
import type {
  BoundOptions,
  DocumentReceipt,
  DocumentWarning,
  HeldSpan,
  Omission,
  Page,
  TextReceipt,
} from '../types.ts';
import { requireBounds } from './bounds.ts';
import { ROOT_INDEX } from './chunks.ts';
import { getGenerationRow, type GenerationRow } from './document-generations.ts';
import { getDocumentRow } from './documents.ts';
import { keptHash } from './duplicates.ts';
import type { Store } from './open-store.ts';
import { parseStored } from './stored-json.ts';

/**
 * A chunk of a document, with the present content of its memory and the hash that was stored with it; `id`, `content`,
 * `tags` and `hash` are null if the memory was erased.
 */
interface ChunkRow {
  readonly chunk: number;
  readonly start: number;
  readonly end: number;
  readonly kept: number;
  readonly id: string | null;
  readonly content: string | null;
  /** Tags of the memory, as JSON. */
  readonly tags: string | null;
  readonly hash: Buffer | null;
}

/**
 * Makes the receipt of a document: for each part of its extracted text, whether a memory still holds that part. It
 * reads the content of all its memories, at most some 20 million characters.
 * @param options.limit greatest number of text spans listed, after the first `options.offset`; `options.now` is the
 *   present time, Unix ms; `options.withinTags` are tags that each of its memories must have
 * @throws EngineError `not_found`, also at a chunk outside of the bounds; `conflict` for a document that queries do not
 *   find in any version
 */
export function readTextReceipt(
  store: Store,
  id: string,
  { limit, offset, now, withinTags }: Page & BoundOptions & { readonly now: number },
): TextReceipt {
  const { live_no: live, state } = getDocumentRow(store, id, now);
  if (live === null) throw new EngineError('conflict', `a document that is ${state} has no receipt`);
  const generation = getGenerationRow(store, live);
  const account = new TextAccount();
  const hash = hashOfPieces(account.ownTexts(readChunkRows(store, live, withinTags)));
  const omissions = parseStored(generation.omissions) as Omission[];
  return {
    documentId: id,
    rootMemoryId: findRoot(store, live),
    characters: generation.characters,
    held: account.held,
    sha256: generation.text_hash?.toString('hex') ?? null,
    heldSha256: hash.toString('hex'),
    isComplete: isComplete(generation, account.held, omissions, hash),
    ...countsOf(generation),
    spans: account.spans.slice(offset, offset + limit),
    total: account.spans.length,
    omissions,
    warnings: parseStored(generation.warnings) as DocumentWarning[],
  };
}

function* readChunkRows(
  store: Store,
  generationNo: number,
  withinTags: readonly string[] | undefined,
): Generator<ChunkRow> {
  const rows = store
    .prepare(
      `SELECT c.chunk_index AS chunk, c.start_offset AS start, c.end_offset AS "end", c.kept, m.id, m.content,
         m.tags, m.content_hash AS hash
       FROM chunks c LEFT JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index > ${ROOT_INDEX} ORDER BY c.chunk_index`,
    )
    .iterate(generationNo) as IterableIterator<ChunkRow>;
  for (const row of rows) {
    if (row.tags !== null) requireBounds({ tags: row.tags }, withinTags, 'document');
    yield row;
  }
}

/**
 * Goes through the chunks of a document in order, and records which span of the text each chunk holds and whether its
 * content is unchanged.
 */
class TextAccount {
  readonly spans: HeldSpan[] = [];
  /** Number of characters (UTF-16 code units) that unchanged chunks hold; overlapping parts are counted once. */
  held = 0;
  /** Content of the previous chunk. */
  #before = '';
  /** Offset at which the previous chunk ends in the extracted text. */
  #end = 0;

  /**
   * Yields the content of each chunk without the beginning that overlaps the previous chunk. A chunk whose memory was
   * erased is skipped.
   */
  *ownTexts(rows: Iterable<ChunkRow>): Iterable<string> {
    for (const { chunk, start, end, kept, id, content, hash } of rows) {
      if (id === null || content === null || hash === null) continue;
      const ownOffset = Math.min(end, Math.max(start, this.#end));
      const repeated = content.slice(0, ownOffset - start);
      const isIntact =
        content.length === end - start &&
        this.#before.endsWith(repeated) &&
        keptHash(contentHash(content)).equals(hash);
      this.spans.push({
        memoryId: id,
        chunk,
        startOffset: start,
        ownOffset,
        endOffset: end,
        isKept: kept === 1,
        isIntact,
      });
      if (isIntact) this.held += end - ownOffset;
      this.#before = content;
      this.#end = end;
      yield content.slice(repeated.length);
    }
  }
}

/**
 * Tells whether memories hold every character of the extracted text, except for white space in parts that are recorded
 * as `no_text`, and whether their text has the hash of the extracted text. The hash is not compared for a document
 * without chunks, or if none was stored.
 */
function isComplete(
  { characters, text_hash: read, chunks }: GenerationRow,
  held: number,
  omissions: readonly Omission[],
  hash: Buffer,
): boolean {
  const unread = omissions.find(({ reason }) => reason === 'no_text')?.characters ?? 0;
  if (held + unread !== characters) return false;
  return chunks === 0 || read === null || read.equals(hash);
}

function countsOf({ receipt }: GenerationRow): DocumentReceipt {
  return receipt === null ? { stored: 0, kept: 0, removed: 0 } : (parseStored(receipt) as DocumentReceipt);
}

function findRoot(store: Store, generationNo: number): string | null {
  const id = store
    .prepare(
      `SELECT m.id FROM chunks c JOIN memories m ON m.seq = c.memory
       WHERE c.generation_no = ? AND c.chunk_index = ${ROOT_INDEX}`,
    )
    .pluck()
    .get(generationNo) as string | undefined;
  return id ?? null;
}
