import { isDeepStrictEqual } from 'node:util';
import { EngineError, isEngineError } from '../errors.ts';
import { findByExternalId, keptHash } from '../store/duplicates.ts';
import { isLiveEndOf, joinsLargeParts, MAX_RELABELLED } from '../store/chains.ts';
import { findEdge, findWaypoint, listSuccessors, type EdgeKey } from '../store/edges.ts';
import { findItemNo, type ItemName } from '../store/items.ts';
import { readMemoryRows } from '../store/memories.ts';
import {
  type DocumentTwin,
  findDocumentNamed,
  findDocumentTwin,
  findTwinById,
  hasPlace,
  hasRevision,
  type StoredTwin,
} from '../store/import-rows.ts';
import type { Store } from '../store/open-store.ts';
import { findLog, type LogRow, readItems } from '../store/session-logs.ts';
import { contentHash } from '../text/content-hash.ts';
import {
  type ImportOutcome,
  MAX_LOG_ITEMS,
  type PortableDocument,
  type PortableLine,
  type PortableLink,
  type PortableLogItem,
  type PortableMemory,
  type PortableRevision,
} from '../types.ts';
import { fittingVectors } from './import-vectors.ts';
import { refuseLongAddress } from './refuse-long-address.ts';
import { contradictionOf } from './relate.ts';
import { findUserNo } from '../store/users.ts';

/** A line of an import that is to be stored, with the stored memories and documents to which it refers. */
export type NewLine =
  | {
      readonly kind: 'new';
      readonly line: PortableMemory;
      readonly hash: Buffer;
      readonly document: DocumentTwin | null;
      readonly vectors: ReturnType<typeof fittingVectors>;
      /** Names of the memory that expired ones have: `releaseItemName` frees them. */
      readonly expiredNames: readonly ItemName[];
    }
  | { readonly kind: 'new'; readonly line: PortableRevision; readonly memoryNo: number }
  | { readonly kind: 'new'; readonly line: PortableLink; readonly link: ResolvedLink }
  | { readonly kind: 'new'; readonly line: PortableDocument }
  | { readonly kind: 'new'; readonly line: PortableLogItem; readonly log: LogRow | undefined };

/**
 * A link of an import whose two memories were found. `winner` is the `memoryNo` of the memory that wins a
 * contradiction; null for other links and for an undecided contradiction.
 */
export interface ResolvedLink {
  readonly key: EdgeKey;
  readonly winner: number | null;
}

/**
 * Decides what an import does with a line of a portable file, and writes nothing. A line never replaces what is stored
 * already.
 * @returns the line with the rows that storing it needs; or its outcome, if nothing is to be stored: `known` for what
 *   is stored already and equal; `kept` if something else is stored in its place and stays (a later version, a whole
 *   document, another waypoint, another item of a log); `refused` with the error; `read` for a type of line that this
 *   import does not store
 */
export function judgeLine(store: Store, line: PortableLine, now: number): NewLine | ImportOutcome {
  try {
    switch (line.type) {
      case 'memory':
        return judgeMemory(store, line, now);
      case 'revision':
        return judgeRevision(store, line);
      case 'link':
        return judgeLink(store, line);
      case 'document':
        return judgeDocument(store, line);
      case 'session_item':
        return judgeLogItem(store, line);
      case 'document_text':
      case 'setting':
      case 'eval_set':
      case 'standing_query':
        return { kind: 'read' };
    }
  } catch (error) {
    if (isEngineError(error) && ['conflict', 'not_found', 'invalid'].includes(error.code)) {
      return { kind: 'refused', error: { code: error.code, message: error.message } };
    }
    throw error;
  }
}

const KNOWN: ImportOutcome = { kind: 'known' };
const KEPT: ImportOutcome = { kind: 'kept' };

function judgeMemory(store: Store, line: PortableMemory, now: number): NewLine | ImportOutcome {
  const hash = contentHash(line.content);
  const twin = findTwinById(store, line.id);
  if (twin !== undefined) return judgeTwin(line, twin, hash);
  const document = line.document === null ? null : documentFor(store, line);
  // A document that is whole misses no part: it was read anew here, or the part was deleted here.
  if (document?.isShown) return KEPT;
  if (document !== null && line.document!.index >= (document.chunks ?? 0))
    throw new EngineError('invalid', `document.index: the document has ${document.chunks} chunks, numbered from 0`);
  if (document !== null && hasPlace(store, document.liveNo!, line.document!.index))
    throw taken('another memory has this place in the document');
  const userNo = findUserNo(store, line.user_id);
  const vectors = fittingVectors(store, line);
  const expiredNames = userNo === undefined ? [] : listExpiredNames(store, line, { userNo, now });
  return { kind: 'new', line, hash, document, vectors, expiredNames };
}

/**
 * Lists those names of an imported memory that expired memories have.
 * @throws EngineError `conflict` if a memory that has not expired has one of the names
 */
function listExpiredNames(
  store: Store,
  { external_id: externalId, item }: PortableMemory,
  { userNo, now }: { readonly userNo: number; readonly now: number },
): ItemName[] {
  const names: ItemName[] = [];
  const named = externalId === null ? undefined : findByExternalId(store, { externalId, userNo }, now);
  if (named !== undefined) {
    if (named.isExpired === 0) throw taken(`external_id belongs to memory ${named.id}`);
    names.push({ userNo, namespace: '', key: externalId! });
  }
  const name = item === null ? undefined : { userNo, ...item };
  const holder = name === undefined ? undefined : findItemNo(store, name);
  if (name !== undefined && holder !== undefined) {
    const [row] = readMemoryRows(store, [holder]);
    if (row!.expires_at === null || row!.expires_at > now) throw taken('another item has this key');
    names.push(name);
  }
  return names;
}

/**
 * Decides what an import does with a memory whose id is already stored: `known` if it is the same, `kept` if the stored
 * version is later, since every change raises the version.
 * @throws EngineError `conflict` for a memory of another user, a lower stored version, or the same version with another
 *   text or time
 */
function judgeTwin(line: PortableMemory, twin: StoredTwin, hash: Buffer): ImportOutcome {
  if (twin.userId !== line.user_id) throw taken('a memory of another user has this id');
  if (twin.version > line.version) return KEPT;
  if (twin.version < line.version)
    throw taken(`the memory is stored in version ${twin.version}, the line has version ${line.version}`);
  const isSameText = twin.contentHash.equals(keptHash(hash));
  const isSameTime = line.updated_at === null || line.updated_at === twin.updatedAt;
  if (!isSameText || !isSameTime) throw taken('the memory is stored with other content');
  return KNOWN;
}

function documentFor(store: Store, line: PortableMemory): DocumentTwin {
  const document = findDocumentTwin(store, line.document!.id);
  if (document === undefined || document.state === 'deleting' || document.liveNo === null)
    throw new EngineError('not_found', 'its document is not there: the line of the document comes first');
  if (document.userId !== line.user_id) throw taken('its document belongs to another user');
  return document;
}

function judgeRevision(store: Store, line: PortableRevision): NewLine | ImportOutcome {
  const { memoryNo, version, updatedAt } = getTwin(store, 'memory', line.memory);
  if (hasRevision(store, memoryNo, line.version)) return KNOWN;
  if (line.version >= version || line.replaced_at > updatedAt)
    throw taken(`the memory is stored in version ${version}, which this does not belong to`);
  return { kind: 'new', line, memoryNo };
}

/**
 * Tells whether the two memories of a link must belong to the same user: those of `supersedes`, `contradicts` and
 * `waypoint` must.
 */
export function joinsOneUser({ link_type: type }: PortableLink): boolean {
  return ['supersedes', 'contradicts', 'waypoint'].includes(type);
}

function judgeLink(store: Store, line: PortableLink): NewLine | ImportOutcome {
  const [src, dst] = [getTwin(store, 'src', line.src), getTwin(store, 'dst', line.dst)];
  const link = { key: keyOf(line, src, dst), winner: winnerOf(line, src, dst) };
  if (findEdge(store, link.key) !== undefined) return KNOWN;
  if (src.memoryNo === dst.memoryNo) throw taken('a memory cannot be linked to itself');
  if (joinsOneUser(line) && src.userNo !== dst.userNo) throw taken('the two memories belong to different users');
  // A waypoint follows the text, which may have been changed here.
  if (line.link_type === 'waypoint' && line.automatic && findWaypoint(store, src.memoryNo) !== undefined) return KEPT;
  if (line.link_type === 'supersedes') {
    if (listSuccessors(store, dst.memoryNo).length > 0) throw taken('another memory supersedes dst already');
    if (isLiveEndOf(store, dst.memoryNo, src.memoryNo)) throw taken('dst supersedes src already');
    if (joinsLargeParts(store, { older: dst.memoryNo, newer: src.memoryNo }))
      throw taken(`over ${MAX_RELABELLED} memories superseded each other before this link, and as many after it`);
  }
  return { kind: 'new', line, link };
}

function keyOf({ link_type: type }: PortableLink, src: StoredTwin, dst: StoredTwin): EdgeKey {
  return type === 'contradicts' ? contradictionOf(src, dst) : { src: src.memoryNo, dst: dst.memoryNo, type };
}

function winnerOf({ winner, src, dst }: PortableLink, from: StoredTwin, to: StoredTwin): number | null {
  if (winner === null) return null;
  if (winner === src) return from.memoryNo;
  if (winner === dst) return to.memoryNo;
  throw taken('winner is neither src nor dst');
}

function judgeDocument(store: Store, line: PortableDocument): NewLine | ImportOutcome {
  const twin = findDocumentTwin(store, line.id);
  if (twin !== undefined) {
    const isSame =
      twin.userId === line.user_id &&
      twin.chunks === line.chunks &&
      (twin.fileHash?.toString('hex') ?? null) === line.sha256;
    if (isSame) return KNOWN;
    const isReadAnew = twin.userId === line.user_id && twin.readAt !== null && twin.readAt > line.read_at;
    if (isReadAnew) return KEPT;
    throw taken('the document is stored with other content');
  }
  refuseLongAddress({ userId: line.user_id, externalId: line.external_id, url: line.url });
  if (line.external_id !== null) {
    const named = findDocumentNamed(store, line.user_id, line.external_id);
    if (named !== undefined) throw taken(`external_id belongs to document ${named.id}`);
  }
  return { kind: 'new', line };
}

/**
 * Decides what an import does with an item of a session log: it is new if it stands directly after the log's last item,
 * `known` if the log has an equal item at this position, and `kept` if it has another one there.
 * @throws EngineError `not_found` if the items before it are missing; `conflict` for a log that is full
 */
function judgeLogItem(store: Store, line: PortableLogItem): NewLine | ImportOutcome {
  const log = findLog(store, { userId: line.user_id, sessionId: line.session_id });
  const items = log?.items ?? 0;
  if (line.position > items)
    throw new EngineError('not_found', `position: the log has ${items} items, not the ones before`);
  if (line.position === MAX_LOG_ITEMS) throw taken(`position: a log has at most ${MAX_LOG_ITEMS} items`);
  if (log === undefined || line.position === items) return { kind: 'new', line, log };
  const [there] = readItems(store, log, line.position, line.position + 1);
  return isDeepStrictEqual(there?.item, line.item) ? KNOWN : KEPT;
}

function getTwin(store: Store, name: string, id: string): StoredTwin {
  const twin = findTwinById(store, id);
  if (twin === undefined) throw new EngineError('not_found', `${name}: no memory with this id`);
  return twin;
}

function taken(message: string): EngineError {
  return new EngineError('conflict', message);
}
