import { readTextSlice, TEXT_START, type TextPlace } from '../store/chunks.ts';
import {
  readOrigins,
  readRevisionRows,
  readShownDocument,
  readVectorRows,
  type RevisionPlace,
  withFewRevisions,
} from '../store/export-rows.ts';
import {
  countLeftOut,
  type ExportBounds,
  type LeftOut,
  listExportedDocuments,
  listExportedLogItems,
  listExportedMemories,
  type LinkPlace,
  type LogPosition,
  readExportBounds,
  readLinkRows,
  selectsLogs,
  withFewLinks,
} from '../store/export-selection.ts';
import { listModels } from '../store/embeddings.ts';
import type { Store } from '../store/open-store.ts';
import { createPastReader } from '../store/past-memories.ts';
import { nameOfWriter } from '../store/writers.ts';
import type { ExportOptions, PortableType } from '../types.ts';
import { documentText, linkText, logItemText, memoryText, revisionText } from './portable-text.ts';
import type { ReadContext } from './read-context.ts';

/**
 * Position up to which an export was read. Documents come first, then memories, links, and session logs. `after` is the
 * number of the last document, memory, or memory whose links were read, or the position of the last item of a session
 * log; `text` is the document whose text is read next; `revisions` and `links` are the positions after which the
 * revisions or links of the last memory go on, if they are not all read.
 */
export type ExportPlace =
  | { readonly stage: 'documents'; readonly after: number; readonly text: OpenText | null }
  | { readonly stage: 'memories'; readonly after: number; readonly revisions?: RevisionPlace | null }
  | { readonly stage: 'links'; readonly after: number; readonly links?: LinkPlace | null }
  | { readonly stage: 'logs'; readonly after: LogPosition };

/** A document of which the export has written only a part of the text so far. */
interface OpenText {
  readonly id: string;
  readonly generationNo: number;
  readonly place: TextPlace;
}

/** A part of an export. */
export interface ExportSlice {
  /** Whole lines, each with its line feed; '' for a part without lines. */
  readonly text: string;
  /** Number of lines of each type; a type without lines may be left out. */
  readonly counts: Readonly<Partial<Record<PortableType, number>>>;
  /** Position of the next part of the export; null after the last part. */
  readonly next: ExportPlace | null;
}

/** What is recorded when an export begins. */
export interface ExportStart {
  readonly bounds: ExportBounds;
  readonly models: ReturnType<typeof listModels>;
  readonly leftOut: LeftOut;
}

/** Position at which an export begins. */
export const EXPORT_START: ExportPlace = { stage: 'documents', after: 0, text: null };

/**
 * Greatest number of memories in one part of an export. A part also ends after `SLICE_BYTES` of text, so that reading
 * it takes some milliseconds.
 */
const SLICE_MEMORIES = 256;
const SLICE_BYTES = 512 * 1024;
/** Number of revisions from which no further memory is taken into a part of an export. */
const SLICE_REVISIONS = 2_000;

/** Determines the bounds of an export that begins now, and counts what it leaves out. */
export function startExport({ open, clock }: ReadContext, _: Record<never, never>): ExportStart {
  const { store } = open();
  return store.read(() => ({
    bounds: readExportBounds(store, clock.now()),
    models: listModels(store),
    leftOut: countLeftOut(store),
  }));
}

/**
 * Reads the next part of an export. Each part is read on a snapshot of its own, so an export of any length blocks
 * neither writers nor the upkeep of the write-ahead log. Memories are written in the state that they had when the
 * export began, which is found in their revisions.
 */
export function readExportSlice(
  { open }: ReadContext,
  asked: { readonly options: ExportOptions; readonly bounds: ExportBounds; readonly place: ExportPlace },
): ExportSlice {
  const { store } = open();
  return store.read(() => {
    switch (asked.place.stage) {
      case 'documents':
        return documentSlice(store, asked, asked.place);
      case 'memories':
        return memorySlice(store, asked, asked.place);
      case 'links':
        return linkSlice(store, asked, asked.place);
      case 'logs':
        return logSlice(store, asked, asked.place.after);
    }
  });
}

type Asked = Pick<Parameters<typeof readExportSlice>[1], 'options' | 'bounds'>;

function documentSlice(
  store: Store,
  { options: { filter = {} }, bounds }: Asked,
  { after, text }: Extract<ExportPlace, { stage: 'documents' }>,
): ExportSlice {
  if (text !== null) return textSlice(store, text, after);
  const [documentNo] = listExportedDocuments(store, filter, { bounds, after, limit: 1 }).numbers;
  if (documentNo === undefined) return { text: '', counts: {}, next: { stage: 'memories', after: 0 } };
  const shown = readShownDocument(store, documentNo);
  if (shown === undefined) return { text: '', counts: {}, next: { stage: 'documents', after: documentNo, text: null } };
  const { document, generation } = shown;
  const opened = { id: document.id, generationNo: generation.generation_no, place: TEXT_START };
  return {
    text: `${documentText(shown, nameOfWriter(store, generation.writer_no))}\n`,
    counts: { document: 1 },
    next: { stage: 'documents', after: documentNo, text: opened },
  };
}

function textSlice(store: Store, { id, generationNo, place }: OpenText, after: number): ExportSlice {
  const slice = readTextSlice(store, generationNo, place);
  const isOver = slice.pieces.length === 0;
  const line = { type: 'document_text', document: id, text: slice.pieces.join('') };
  return {
    text: isOver ? '' : `${JSON.stringify(line)}\n`,
    counts: isOver ? {} : { document_text: 1 },
    next: { stage: 'documents', after, text: isOver ? null : { id, generationNo, place: slice.place } },
  };
}

function memorySlice(
  store: Store,
  { options, bounds }: Asked,
  { after, revisions }: Extract<ExportPlace, { stage: 'memories' }>,
): ExportSlice {
  const { filter = {}, vectors = false } = options;
  const { at } = bounds;
  if (revisions) {
    const { rows, end } = readRevisionRows(store, revisions, { at, bytes: SLICE_BYTES });
    return sliceOf(rows.map(revisionText), { revision: rows.length }, { stage: 'memories', after, revisions: end });
  }
  const listed = listExportedMemories(store, filter, { bounds, after, limit: SLICE_MEMORIES });
  const past = createPastReader(store, at);
  const within = past.within(withFewRevisions(store, listed.numbers, SLICE_REVISIONS), SLICE_BYTES);
  const { rows: replaced, end } = readRevisionRows(store, within, { at, bytes: SLICE_BYTES });
  const taken = end === null ? within : within.filter((memoryNo) => memoryNo <= end.memoryNo);
  const rows = past.readRows(taken);
  const origins = readOrigins(store, taken);
  const revisionsOf = Map.groupBy(replaced, ({ memory }) => memory);
  // An import embeds a text that comes without vectors.
  const vectorsOf = vectors ? readVectorRows(store, past.ofSameText(taken)) : null;
  const lines = taken.flatMap((memoryNo) => [
    memoryText(rows.get(memoryNo)!, origins.get(memoryNo)!, vectorsOf && (vectorsOf.get(memoryNo) ?? [])),
    ...(revisionsOf.get(memoryNo) ?? []).map(revisionText),
  ]);
  const next = end !== null || taken.length < listed.numbers.length ? taken.at(-1)! : listed.next;
  return sliceOf(
    lines,
    { memory: taken.length, revision: replaced.length },
    next === null ? { stage: 'links', after: 0 } : { stage: 'memories', after: next, revisions: end },
  );
}

function sliceOf(lines: readonly string[], counts: ExportSlice['counts'], next: ExportPlace | null): ExportSlice {
  return { text: lines.map((line) => `${line}\n`).join(''), counts, next };
}

function linkSlice(
  store: Store,
  { options: { filter = {} }, bounds }: Asked,
  { after, links }: Extract<ExportPlace, { stage: 'links' }>,
): ExportSlice {
  if (links) {
    const { rows, end } = readLinkRows(store, filter, { bounds, from: links });
    return sliceOf(rows.map(linkText), { link: rows.length }, { stage: 'links', after, links: end });
  }
  const listed = listExportedMemories(store, filter, { bounds, after, limit: SLICE_MEMORIES });
  const taken = withFewLinks(store, listed.numbers);
  const { rows, end } = readLinkRows(store, filter, { bounds, from: taken });
  const next = end !== null || taken.length < listed.numbers.length ? taken.at(-1)! : listed.next;
  const place: ExportPlace | null =
    next !== null ? { stage: 'links', after: next, links: end } : selectsLogs(filter) ? FIRST_LOG : null;
  return sliceOf(rows.map(linkText), { link: rows.length }, place);
}

const FIRST_LOG: ExportPlace = { stage: 'logs', after: [0, -1] };

function logSlice(store: Store, { options: { filter = {} }, bounds }: Asked, after: LogPosition): ExportSlice {
  const { items, next } = listExportedLogItems(store, filter, { bounds, after, bytes: SLICE_BYTES });
  return {
    text: items.map((row) => `${logItemText(row)}\n`).join(''),
    counts: { session_item: items.length },
    next: next === null ? null : { stage: 'logs', after: next },
  };
}
