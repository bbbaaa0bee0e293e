import { ERASE_PENDING, forgetSpaceOf } from '../commands/erase.ts';
import { changeMemory } from '../commands/patch.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { screenFields } from '../privacy/screen-memory.ts';
import { startScreening } from '../privacy/screening.ts';
import { screenStandingQuery } from '../privacy/standing-texts.ts';
import { appendAudit } from '../store/audit-chain.ts';
import { keptHash } from '../store/duplicates.ts';
import { listEvalItems, putEvalItem } from '../store/evals.ts';
import { eraseStoredReplies } from '../store/idempotency.ts';
import { listMemoryNosAfter, readMemoryRows, type MemoryColumns, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { deleteRecall, listRecallsAfter } from '../store/recalls.ts';
import { deleteRevisions, readRevisionSlice } from '../store/revisions.ts';
import { listLogItemsAfter, putLogItem } from '../store/session-logs.ts';
import {
  type GenerationTexts,
  listGenerationsAfter,
  listStandingAfter,
  putGenerationTexts,
} from '../store/scanned-rows.ts';
import { putStandingTexts } from '../store/standing.ts';
import { putInfo } from '../store/store-info.ts';
import { contentHash } from '../text/content-hash.ts';
import type { Json, Metadata, SensitiveKind } from '../types.ts';

/** Number of rows that are read at a time. */
const SLICE = 100;
/** Places whose `name` is an id. The names of the others may hold a user's. */
const NAMED_BY_ID: ReadonlySet<ScannedPlace> = new Set(['memory', 'document', 'standing query', 'recall']);

/**
 * Where a scan for sensitive values may find one. A value in a `part`, which is a chunk of a document, or in an
 * `address`, which is the URL or the external id of a document, is only reported: to remove it, add the document again.
 */
export type ScannedPlace =
  'memory' | 'part' | 'document' | 'address' | 'standing query' | 'log item' | 'recall' | 'evaluation item';

/** A place in which a scan found sensitive values. It names their kinds, never the values. */
interface Finding {
  readonly place: ScannedPlace;
  /**
   * Id of the memory, document, standing query or recall (logged query); for an item of a session log, user, session
   * and position; for an evaluation item, name of the set and its position.
   */
  readonly name: string;
  /** Number of values by kind. */
  readonly counts: Readonly<Partial<Record<SensitiveKind, number>>>;
  /**
   * Redacts the values. For a memory it also erases the earlier versions; a recall (logged query) is erased as a whole.
   * For a chunk or an address of a document it redacts nothing. What it redacts has an audit record, unless `OM_AUDIT`
   * is `off`. It writes what the scan has read, so nobody else may write to the file meanwhile. Call it inside a write
   * transaction, and after the scan `reindexWaiting` until none waits.
   */
  redact(context: WriteContext): void;
}

/** The scope of a scan. */
interface ScanOptions {
  /** Scans only what belongs to this user; undefined scans everything. */
  readonly userId: string | undefined;
  /** Called after each slice of memories with the number of memories that were read. */
  readonly onProgress: (done: number) => void;
}

/**
 * Scans stored texts for sensitive values: memories with their earlier versions, in the order in which they were added,
 * then the fields of documents, standing queries, session logs, recalls and evaluation sets. Ids and keys that callers
 * chose are not scanned, except for external ids of documents. It yields only places in which it found some, and
 * changes nothing itself.
 */
export async function* scanStore(store: Store, options: ScanOptions): AsyncGenerator<Finding> {
  yield* scanMemories(store, options);
  yield* scanDocuments(store, options);
  yield* scanStanding(store, options);
  yield* scanLogs(store, options);
  yield* scanRecalls(store, options);
  yield* scanEvals(store, options);
}

async function* scanMemories(store: Store, { userId, onProgress }: ScanOptions): AsyncGenerator<Finding> {
  let done = 0;
  for (let after = 0; ;) {
    const memoryNos = listMemoryNosAfter(store, after, SLICE);
    const last = memoryNos.at(-1);
    if (last === undefined) return;
    for (const row of readMemoryRows(store, memoryNos)) {
      if (userId === undefined || row.user_id === userId) yield* found(await scanMemory(store, row));
    }
    onProgress((done += memoryNos.length));
    after = last;
  }
}

async function scanMemory(store: Store, row: MemoryRow): Promise<Finding> {
  const screening = startScan();
  const fields = await screenFields(screening, {
    content: row.content,
    title: row.title,
    gist: row.gist,
    ...(row.type === null ? {} : { type: row.type }),
    tags: JSON.parse(row.tags) as string[],
    files: JSON.parse(row.files) as string[],
    entities: JSON.parse(row.entities) as string[],
    metadata: JSON.parse(row.metadata) as Metadata,
    ...(row.value === null ? {} : { value: JSON.parse(row.value) as Json }),
  });
  for (let before = row.version; ;) {
    const { items, hasMore } = readRevisionSlice(store, row.memoryNo, { before, limit: SLICE });
    for (const { replaced } of items) await screenFields(screening, { value: replaced });
    const oldest = items.at(-1);
    if (!hasMore || oldest === undefined) break;
    before = oldest.version;
  }
  return {
    place: row.generation_no === null ? 'memory' : 'part',
    name: row.id,
    counts: screening.report().redacted,
    redact: (context) => redactMemory(context, row, changedColumns(row, fields)),
  };
}

/**
 * Returns the redacted fields that differ from the stored ones as columns of the memory, with a new hash of the text if
 * the text changed.
 */
function changedColumns(
  row: MemoryRow,
  { content, title, gist, type, ...json }: Parameters<typeof screenFields>[1],
): MemoryColumns {
  const encoded = Object.entries(json).map(([name, value]) => [name, JSON.stringify(value)]);
  const columns = Object.entries({ content, title, gist, type, ...(Object.fromEntries(encoded) as object) }).filter(
    ([name, value]) => value !== undefined && value !== row[name as keyof MemoryRow],
  );
  const hash = content === row.content ? {} : { content_hash: keptHash(contentHash(content ?? '')) };
  return { ...(Object.fromEntries(columns) as MemoryColumns), ...hash };
}

/**
 * Writes a memory with its sensitive values redacted, and erases other data that may still contain them: earlier
 * versions, the model of word meanings (latent space) if it was fitted to this text, and stored replies that refer to
 * the memory.
 */
function redactMemory(context: WriteContext, { memoryNo }: MemoryRow, columns: MemoryColumns): void {
  const [before] = readMemoryRows(context.store, [memoryNo]);
  if (before === undefined) return;
  forgetSpaceOf(context.store, [before]);
  eraseStoredReplies(context.store, [memoryNo]);
  changeMemory(context, before, { columns, status: undefined });
  deleteRevisions(context.store, memoryNo);
}

async function* scanDocuments(store: Store, { userId }: ScanOptions): AsyncGenerator<Finding> {
  for (let after = 0; ;) {
    const generations = listGenerationsAfter(store, { userId, after, limit: SLICE });
    for (const { generationNo, documentId: name, url, externalId, texts } of generations) {
      const { value, counts } = await scanJson(texts as unknown as Json);
      const redacted = value as unknown as GenerationTexts;
      yield* found({
        ...{ place: 'document', name, counts },
        redact: (context) => putGenerationTexts(context.store, generationNo, redacted),
      });
      const address = await scanJson([url, externalId]);
      yield* found({ place: 'address', name, counts: address.counts, redact: () => {} });
    }
    const last = generations.at(-1);
    if (last === undefined) return;
    after = last.generationNo;
  }
}

async function* scanStanding(store: Store, { userId }: ScanOptions): AsyncGenerator<Finding> {
  for (let after = 0; ;) {
    const queries = listStandingAfter(store, { userId, after, limit: SLICE });
    for (const query of queries) {
      const screening = startScan();
      const screened = await screenStandingQuery(
        query,
        async (value) => (await screenFields(screening, { value })).value,
      );
      yield* found({
        ...{ place: 'standing query', name: query.id, counts: screening.report().redacted },
        redact: (context) => putStandingTexts(context.store, query.queryNo, screened),
      });
    }
    const last = queries.at(-1);
    if (last === undefined) return;
    after = last.queryNo;
  }
}

async function* scanLogs(store: Store, { userId }: ScanOptions): AsyncGenerator<Finding> {
  for (let after: readonly [logNo: number, position: number] = [0, 0]; ;) {
    const items = listLogItemsAfter(store, { userId, after, limit: SLICE });
    for (const { logNo, position, item, place } of items) {
      const { value, counts } = await scanJson(item);
      yield* found({
        place: 'log item',
        name: `${place.userId}/${place.sessionId}#${position}`,
        counts,
        redact: (context) => putLogItem(context.store, { logNo, position, item: value }),
      });
    }
    const last = items.at(-1);
    if (last === undefined) return;
    after = [last.logNo, last.position];
  }
}

async function* scanRecalls(store: Store, { userId }: ScanOptions): AsyncGenerator<Finding> {
  for (let after = 0; ;) {
    const recalls = listRecallsAfter(store, { userId, after, limit: SLICE });
    for (const { recallNo, head } of recalls) {
      const { counts } = await scanJson([head.question, head.filter] as unknown as Json);
      yield* found({
        place: 'recall',
        name: head.recallId,
        counts,
        redact: (context) => deleteRecall(context.store, recallNo),
      });
    }
    const last = recalls.at(-1);
    if (last === undefined) return;
    after = last.recallNo;
  }
}

async function* scanEvals(store: Store, { userId }: ScanOptions): AsyncGenerator<Finding> {
  for (const { setNo, name, place, item } of listEvalItems(store, userId)) {
    const { value, counts } = await scanJson(item as unknown as Json);
    yield* found({
      place: 'evaluation item',
      name: `${name}#${place}`,
      counts,
      redact: (context) => putEvalItem(context.store, { setNo, place, item: value }),
    });
  }
}

function* found(finding: Finding): Generator<Finding> {
  if (Object.keys(finding.counts).length === 0) return;
  const { place, name } = finding;
  const redact = (context: WriteContext) => {
    if (place === 'part' || place === 'address') return;
    const { store, now, writtenBy, config } = context;
    finding.redact(context);
    putInfo(store, ERASE_PENDING, String(now));
    if (config.OM_AUDIT === 'off') return;
    const detail = { place, ...(NAMED_BY_ID.has(place) ? { id: name } : {}) };
    appendAudit(store, { at: now, keyId: writtenBy, action: 'scan.redact', detail });
  };
  yield { ...finding, redact };
}

async function scanJson(json: Json): Promise<{ readonly value: Json } & Pick<Finding, 'counts'>> {
  const screening = startScan();
  const { value } = await screenFields(screening, { value: json });
  return { value, counts: screening.report().redacted };
}

function startScan(): ReturnType<typeof startScreening> {
  return startScreening({ secrets: 'redact', personal: 'redact' }, null);
}
