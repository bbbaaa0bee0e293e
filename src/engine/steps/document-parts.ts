import { createHash } from 'node:crypto';
import type { ParseResult } from '../ports.ts';
import { markMetadata } from '../privacy/screen-memory.ts';
import { readChunkTexts, ROOT_INDEX, type ChunkPlace } from '../store/chunks.ts';
import type { Store } from '../store/open-store.ts';
import { gistOf } from '../text/gist.ts';
import type { Json, Metadata, SensitiveKind } from '../types.ts';
import type { DocumentReading } from './document-reading.ts';
import { beginningOf } from '../text/beginning-of.ts';

/**
 * One of the memories as which a document is stored: the root, which represents the whole document, or a chunk. `gist`
 * is one informative sentence; '' for a chunk.
 */
export interface DocumentPart extends ChunkPlace {
  readonly title: string;
  readonly content: string;
  readonly gist: string;
  /** Kinds of sensitive values that are marked in the memory's title and text; left out if none were looked for. */
  readonly sensitive?: readonly SensitiveKind[];
}

/** Longest content of a root, in UTF-16 code units. */
const MAX_ROOT_CHARACTERS = 4_000;
/** Longest title of a chunk, in UTF-16 code units. */
const MAX_TITLE_CHARACTERS = 1_024;

/**
 * Makes the memories of a document, the root first. The root represents the whole document: its content is the title,
 * the gist (first informative sentence) of the first chunk, and the headings, cut after 4,000 UTF-16 code units; '…' if
 * there are none of them.
 * @param parsed has at least one chunk
 */
export function partsOf(title: string, parsed: ParseResult): DocumentPart[] {
  const first = parsed.chunks[0]!;
  const gist = gistOf(first.content, title);
  const outline = parsed.outline.map(({ level, text }) => `${'  '.repeat(level - 1)}- ${text}`).join('\n');
  const content = beginningOf([title, gist, outline].filter(Boolean).join('\n\n'), MAX_ROOT_CHARACTERS);
  const sensitive = [...new Set([...(parsed.sensitive ?? []), ...(first.sensitive ?? [])])].sort();
  const whole = { startOffset: 0, endOffset: parsed.characters, pageFrom: null, pageTo: null, headingPath: [] };
  return [
    { ...whole, index: ROOT_INDEX, tokens: 0, title, content: content || '…', gist, sensitive },
    ...parsed.chunks.map((chunk, index) => ({
      ...chunk,
      index,
      title: beginningOf([...new Set([title, ...chunk.headingPath])].filter(Boolean).join(' › '), MAX_TITLE_CHARACTERS),
      gist: '',
    })),
  ];
}

/**
 * Finds those memories of the document's live generation (the reading that queries find) that have the same title and
 * text as one of the new parts, and the marks of its sensitive values; other fields may differ. These memories are
 * kept, with vectors, links, salience and strength.
 * @returns `memoryNo` of each kept memory by the index of its part; empty if there is no live generation
 */
export function keepEqualParts(
  store: Store,
  { document, generation }: DocumentReading,
  parts: readonly DocumentPart[],
): Map<number, number> {
  const kept = new Map<number, number>();
  if (document.live_no === null) return kept;
  const memoriesByKey = new Map<string, { readonly memoryNo: number; readonly marks: readonly Json[] }[]>();
  for (const { memoryNo, index, title, content, metadata } of readChunkTexts(store, document.live_no)) {
    const key = keyOf(index, title, content);
    memoriesByKey.set(key, [...(memoriesByKey.get(key) ?? []), { memoryNo, marks: marksOf(metadata) }]);
  }
  const stated = JSON.parse(generation.metadata) as Metadata;
  for (const part of parts) {
    const memory = memoriesByKey.get(keyOf(part.index, part.title, part.content))?.shift();
    // If the document's metadata have no room for marks, a new memory would lack them as well.
    const { sensitive } = part.sensitive?.length ? markMetadata(stated, part.sensitive) : {};
    const wanted = Array.isArray(sensitive) ? (sensitive as readonly Json[]) : [];
    if (memory !== undefined && wanted.every((kind) => memory.marks.includes(kind)))
      kept.set(part.index, memory.memoryNo);
  }
  return kept;
}

/** Returns the kinds of sensitive values that the metadata of a memory, as JSON, name. */
function marksOf(metadata: string): readonly Json[] {
  if (!metadata.includes('"sensitive"')) return [];
  const { sensitive } = JSON.parse(metadata) as Metadata;
  return Array.isArray(sensitive) ? (sensitive as readonly Json[]) : [];
}

function keyOf(index: number, title: string, content: string): string {
  const kind = index === ROOT_INDEX ? 'root' : 'chunk';
  return createHash('sha256').update(`${kind}\n${title}\n`).update(content).digest('base64');
}
