import { createHash } from 'node:crypto';
import { isEngineError, serialiseError } from '../errors.ts';
import type { PrivacyGuard } from '../privacy/guard.ts';
import type { JudgedImport } from '../readers/judge-import.ts';
import { EXPORT_START, type ExportPlace, type ExportSlice } from '../readers/export-slice.ts';
import {
  type ExportOptions,
  type ImportOutcome,
  type Portable,
  PORTABLE_TYPES,
  PORTABLE_VERSION,
  type PortableLine,
  type PortableType,
} from '../types.ts';
import { takeTurn } from '../turns.ts';
import { VERSION } from '../version.ts';
import { endWaiting } from './end-waiting.ts';
import { quotaOf } from './quota-of.ts';
import { ImportRehearsal } from './rehearse-import.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

/** Makes the methods by which a tenant exports and imports its data as a whole. */
export function createPortableMethods(options: TenantOptions): Portable {
  const { path, readers, writer, dispatcher, metrics } = options;
  const guard = guardOf(options);
  return {
    exportLines: (asked) => exportLines(options, asked),

    importLines: inOrder(guard, async (lines) => {
      const outcomes: ImportOutcome[] = [];
      while (outcomes.length < lines.length) {
        const part = firstPart(lines, outcomes.length);
        await takeTurn();
        const { outcomes: done } = await writer.write(path, 'importLines', {
          ...{ lines: part, quota: quotaOf(options) },
        });
        outcomes.push(...done);
        const added = done.filter(({ kind }, at) => kind === 'stored' && part[at]!.type === 'memory').length;
        if (added === 0) continue;
        metrics.adds.inc({ outcome: 'accepted' }, added);
        dispatcher.dispatch(path, 'encode');
      }
      return outcomes;
    }),

    rehearseImport() {
      const rehearsal = new ImportRehearsal(async (lines) => {
        const judged: JudgedImport[] = [];
        while (judged.length < lines.length) {
          const part = firstPart(lines, judged.length);
          await takeTurn();
          judged.push(...(await readers.read(path, 'judgeImport', { lines: part })));
        }
        return judged;
      });
      return { importLines: inOrder(guard, (lines) => rehearsal.importLines(lines)), end: () => rehearsal.end() };
    },
  };
}

type ImportLines = (lines: readonly PortableLine[]) => Promise<ImportOutcome[]>;

/**
 * Makes an import of the lines that the privacy policy lets pass; a line that it refuses has the outcome `refused`.
 * Lines are imported in the order of the calls, since a line may refer to any line before it: a call begins when the
 * one before has ended, as one call may need several commits. Only its screening begins earlier.
 */
function inOrder(guard: PrivacyGuard, importGood: ImportLines): ImportLines {
  let before: Promise<unknown> = Promise.resolve();
  return (lines) => {
    const screening = guard.isOn() ? screenLines(guard, lines) : lines;
    const importing = before.then(async () => {
      const judged = await screening;
      const outcomes = (await importGood(judged.filter((line) => 'type' in line))).values();
      return judged.map((line) => ('type' in line ? outcomes.next().value! : line));
    });
    before = Promise.allSettled([screening, importing]);
    return importing;
  };
}

/**
 * Size of texts, labels, values and vectors (bytes) from which a request to another thread takes no further line of an
 * import. To write so much JSON of many small parts takes this thread some 8 ms.
 */
const MAX_PART_BYTES = 256 * 1024;

/** Returns the lines from the index `from` on, as many as one request should have; at least one. */
function firstPart(lines: readonly PortableLine[], from: number): readonly PortableLine[] {
  let left = MAX_PART_BYTES;
  let end = from;
  for (; end < lines.length && left > 0; end += 1) left -= bytesOf(lines[end]!);
  return lines.slice(from, end);
}

/** Returns the approximate size of a line in bytes, as it is passed to the writer thread. */
function bytesOf(line: PortableLine): number {
  if (line.type !== 'memory') return JSON.stringify(line).length;
  const { content, title, gist, entities, tags, files, value, vectors = [] } = line;
  const valueBytes = value === null ? 0 : JSON.stringify(value).length;
  const texts = [content, title, gist, ...entities, ...tags, ...files, ...vectors.map(({ data }) => data)];
  return texts.reduce((sum, { length }) => sum + length, valueBytes);
}

/**
 * Yields the text of an export, in pieces that may begin and end inside of a line: the head, the configuration, the
 * data slice by slice, and a last line with the counts and the SHA-256 of all text before it.
 */
async function* exportLines(
  { id, path, readers, writer }: Pick<TenantOptions, 'id' | 'path' | 'readers' | 'writer'>,
  { asked = {}, configuration, ...options }: ExportOptions,
): AsyncGenerator<string> {
  await endWaiting({ path, writer }); // A copy does not know what waits.
  const { bounds, models, leftOut } = await readers.read(path, 'startExport', {});
  const hash = createHash('sha256');
  const counts = Object.fromEntries(PORTABLE_TYPES.map((type) => [type, 0])) as Record<PortableType, number>;
  const hashed = (text: string) => {
    hash.update(text);
    return text;
  };
  const head = {
    type: 'cairn.export',
    version: PORTABLE_VERSION,
    cairn: VERSION,
    tenant: id,
    created_at: new Date(bounds.at).toISOString(),
    filter: asked,
    models: models.map(({ modelNo: _modelNo, ...model }) => model),
  };
  yield hashed(lineOf(head));
  for await (const line of configuration ?? []) {
    counts[line.type] += 1;
    for await (const piece of linePieces(line)) yield hashed(piece);
  }
  const readSlice = (place: ExportPlace): Promise<ExportSlice> => {
    const reading = readers.read(path, 'readExportSlice', { options, bounds, place });
    reading.catch(() => {}); // It is told when its turn comes, and to nobody if the caller has left.
    return reading;
  };
  let reading: Promise<ExportSlice> | null = readSlice(EXPORT_START);
  while (reading !== null) {
    const { text, counts: counted, next }: ExportSlice = await reading;
    // The next slice is read while this one is on its way.
    reading = next === null ? null : readSlice(next);
    for (const [type, count] of Object.entries(counted)) counts[type as PortableType] += count;
    if (text !== '') yield hashed(text);
  }
  const left = Object.entries(leftOut).filter(([, count]) => count > 0);
  const told = left.length === 0 ? {} : { left_out: Object.fromEntries(left) };
  yield lineOf({ type: 'end', counts, ...told, sha256: hash.digest('hex') });
}

const lineOf = (value: object) => `${JSON.stringify(value)}\n`;

/** Number of characters from which a piece of a line is sent. */
const PIECE_CHARACTERS = 64 * 1024;

/** Makes a line in pieces, and lets other work in between the entries of its lists: an evaluation set has megabytes. */
async function* linePieces(line: object): AsyncGenerator<string> {
  let piece = '';
  for (const [name, value] of Object.entries(line) as [string, unknown][]) {
    if (value === undefined) continue;
    piece += `${piece === '' ? '{' : ','}${JSON.stringify(name)}:`;
    if (!Array.isArray(value)) {
      piece += JSON.stringify(value);
      continue;
    }
    for (const [at, entry] of value.entries()) {
      piece += `${at === 0 ? '[' : ','}${JSON.stringify(entry)}`;
      await takeTurn();
      if (piece.length < PIECE_CHARACTERS) continue;
      yield piece;
      piece = '';
    }
    piece += value.length === 0 ? '[]' : ']';
  }
  await takeTurn();
  yield `${piece}}\n`;
}

/** Screens the lines that an import is about to store. A line that the policy refuses is replaced by its outcome. */
async function screenLines(
  guard: PrivacyGuard,
  lines: readonly PortableLine[],
): Promise<(PortableLine | ImportOutcome)[]> {
  const screened: (PortableLine | ImportOutcome)[] = [];
  for (const line of lines) {
    try {
      screened.push(await screenLine(guard, line));
    } catch (error) {
      if (!isEngineError(error, 'unprocessable')) throw error;
      const { code, message } = serialiseError(error);
      screened.push({ kind: 'refused', error: { code, message } });
    }
  }
  return screened;
}

/**
 * Returns a memory, a document, an earlier version or an item of a session log as the privacy policy lets it be stored;
 * other lines are unchanged. The key of an item, external ids and the URL of a document are only checked. A memory
 * whose text or title changes loses its vectors, which were made of the former ones.
 * @throws EngineError `unprocessable` if the policy refuses it; `unavailable` while the analyzer cannot be reached and
 *   `OM_PII_FAIL` is `refuse`
 */
async function screenLine(guard: PrivacyGuard, line: PortableLine): Promise<PortableLine> {
  switch (line.type) {
    case 'memory': {
      const { memory_type: type, external_id: externalId, ...rest } = line;
      if (line.item !== null) await guard.fields({ externalId: line.item.key });
      const headings = line.document?.heading_path;
      const { fields } = await guard.fields({ ...rest, type, externalId, headings });
      const { type: screened, externalId: named, headings: above = [], ...others } = fields;
      const isSameText = others.content === line.content && others.title === line.title;
      return {
        ...others,
        type: 'memory',
        memory_type: screened,
        external_id: named,
        document: line.document && { ...line.document, heading_path: above },
        vectors: isSameText ? line.vectors : undefined,
      };
    }
    case 'document': {
      const { document_type: type, external_id: externalId, title, given_title, file_name, tags, metadata } = line;
      const { authors, url } = line;
      const { fields } = await guard.fields({ title, type, tags, metadata, externalId, authors, url });
      const [given, file] = [
        await guard.fields({ title: given_title }),
        await guard.fields({ title: file_name }),
      ] as const;
      return {
        ...line,
        title: fields.title,
        document_type: fields.type,
        tags: fields.tags,
        metadata: fields.metadata,
        authors: fields.authors,
        given_title: given.fields.title,
        file_name: file.fields.title,
      };
    }
    case 'revision': {
      // All former values are screened as the JSON that they are, whatever fields they belong to.
      const { fields } = await guard.fields({ value: line.replaced });
      return { ...line, replaced: fields.value };
    }
    case 'session_item':
      return { ...line, item: (await guard.fields({ value: line.item })).fields.value };
    default:
      return line;
  }
}
