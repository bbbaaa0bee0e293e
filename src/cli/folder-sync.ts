/**
 * Keeps the documents of a server equal to the files of a folder. A document belongs to a file if its external id is
 * the file's absolute path, as `cairn ingest` stores it; nothing else is remembered between two runs. Each pass
 * compares the whole folder with all of its documents, so the next pass makes up for one that was missed or
 * interrupted.
 */
import fs from 'node:fs';
import path from 'node:path';
import pLimit from 'p-limit';
import { RefusalError, type Client } from './client.ts';
import { concernsOne, describeFailure, type Failure } from './document-failures.ts';
import { ChangedFileError } from './file-form.ts';
import { findFiles, type FoundFile } from './find-files.ts';
import {
  externalIdOf,
  hashFile,
  isAlike,
  retryWhileBusy,
  uploadFile,
  type OnWait,
  type SentDocument,
  type SharedFields,
} from './send-documents.ts';

export interface FolderSyncOptions {
  readonly client: Client;
  /** Absolute path of the folder. */
  readonly folder: string;
  readonly shared: SharedFields;
  /** Tells whether a file is to be stored as a document, by the file's path below the folder. */
  readonly wants: (inside: string) => boolean;
  /**
   * Time for which a file must be missing until its document is deleted (ms), since some editors remove a file before
   * they write it anew.
   */
  readonly graceMs: number;
  /**
   * Time after which a pass reads the list of documents from the server again (ms), since others may have deleted or
   * replaced some, or the server may have been restored from a backup.
   */
  readonly listEveryMs: number;
  readonly onChange: (change: Change) => void;
  readonly onWait: OnWait;
}

/** A change that a pass made for one document. Paths are relative to the folder. */
export type Change =
  | { readonly kind: 'new' | 'changed' | 'removed'; readonly path: string }
  | { readonly kind: 'renamed'; readonly path: string; readonly from: string }
  | { readonly kind: 'refused'; readonly path: string; readonly failure: Failure };

export interface Pass {
  /** Number of files in the folder that `wants` accepts. */
  readonly files: number;
  /** Folders that the pass searched. */
  readonly folders: readonly string[];
  /** Documents that were sent, by the path of their file below the folder. */
  readonly sent: ReadonlyMap<string, SentDocument>;
  /**
   * Number of files, new to this run or changed since the pass before, that were not sent, because the server's
   * document has the same SHA-256 hash and the right fields.
   */
  readonly known: number;
  /**
   * Number of documents that were kept although their files are missing. That happens if all documents of the folder
   * are affected, or more than ten and more than half of them, as when a disk is not mounted.
   */
  readonly held: number;
  /**
   * True if another pass should follow soon: a file changed or vanished while it was sent, the document that a renamed
   * file should get was gone, or a file has been missing for less than `graceMs`.
   */
  readonly isUnfinished: boolean;
}

export interface FolderSync {
  /**
   * Compares the folder with the server's documents once, and makes the documents equal to the files.
   * @param options.mayRemoveMost true to delete the documents of missing files even if these are all documents, or more
   *   than ten and more than half of them; by default they are kept then (`held`)
   * @throws ConnectionError; RefusalError if the server refuses every request, as for a wrong key, or is still busy
   *   after ten minutes; the system's error if the folder does not exist
   */
  pass(options?: { readonly mayRemoveMost?: boolean }): Promise<Pass>;
}

interface KnownDocument {
  readonly id: string;
  readonly sha256: string | null;
  /**
   * True if the document has the session, tags and metadata of this run, and its processing has not failed or been
   * cancelled.
   */
  readonly isAlike: boolean;
  /**
   * True if the server has read the content that was sent last; until then, and if it cannot read it, `sha256` may be
   * that of the content before.
   */
  readonly isRead: boolean;
}

const UPLOADS_AT_ONCE = 4;
const DOCUMENTS_A_PAGE = 1_000;
/**
 * Number of missing files up to which one pass deletes their documents, even if they are more than half of all
 * documents of the folder, but not all of them.
 */
const FEW = 10;

export function createFolderSync(options: FolderSyncOptions): FolderSync {
  const { client, folder, wants, graceMs, listEveryMs, shared } = options;
  /** Documents of the folder by the absolute path of their file; undefined until they were read from the server. */
  let documents: Map<string, KnownDocument> | undefined;
  /** Time at which `documents` were read from the server (ms of `performance.now()`). */
  let listedAt = 0;
  /**
   * State (`stamp`) of each file that need not be sent again, by path: its document is up to date, or was refused for
   * good.
   */
  let handled = new Map<string, string>();
  /** State (`stamp`) of each file that could not be sent, by path, so that each failure is reported once. */
  const unreadable = new Map<string, string>();
  /** Time at which a document's file was first found missing, by path (ms of `performance.now()`). */
  let missing = new Map<string, number>();

  const compare = async (known: Map<string, KnownDocument>, mayRemoveMost: boolean): Promise<Pass> => {
    const found = findFiles([folder]);
    const files = found.files.filter((file) => wants(insideOf(folder, file.path)));
    const present = new Set(files.map((file) => file.path));
    handled = new Map([...handled].filter(([file]) => present.has(file)));
    const gone = [...known.keys()].filter((file) => !present.has(file) && isGone(file));
    const changed = files.filter((file) => handled.get(file.path) !== file.stamp);
    const sending = await sendAll(options, { changed, gone, known, handled, unreadable });

    const now = performance.now();
    missing = new Map(gone.filter((file) => known.has(file)).map((file) => [file, missing.get(file) ?? now]));
    const due = [...missing].filter(([, since]) => now - since >= graceMs).map(([file]) => file);
    const isMost = due.length === known.size || (due.length > FEW && due.length > known.size / 2);
    const leaving = isMost && !mayRemoveMost ? [] : due;
    for (const file of leaving) {
      await remove(client, known.get(file)!.id, shared.user);
      known.delete(file);
      options.onChange({ kind: 'removed', path: insideOf(folder, file) });
    }
    const held = due.length - leaving.length;
    return {
      files: files.length,
      folders: found.folders,
      ...sending,
      held,
      isUnfinished: sending.isUnfinished || missing.size > due.length,
    };
  };

  return {
    async pass({ mayRemoveMost = false } = {}) {
      try {
        if (documents === undefined || performance.now() - listedAt >= listEveryMs) {
          const before = documents;
          documents = await listDocuments(options, before);
          listedAt = performance.now();
          for (const file of handled.keys())
            if (hasChanged(before?.get(file), documents.get(file))) handled.delete(file);
        }
        return await compare(documents, mayRemoveMost);
      } catch (error) {
        // The server may have been restored meanwhile, so the next pass asks for its documents again.
        documents = undefined;
        handled.clear();
        throw error;
      }
    },
  };
}

/**
 * Tells whether others have deleted, replaced or changed the document of a file. A file that the server has refused or
 * cannot read has not changed, so it is not sent again.
 */
function hasChanged(before: KnownDocument | undefined, now: KnownDocument | undefined): boolean {
  return before?.id !== now?.id || (now?.isRead === true && before?.sha256 !== now.sha256);
}

// ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface ToSend {
  readonly changed: readonly FoundFile[];
  /** Paths of the files that have a document on the server but no longer exist. */
  readonly gone: readonly string[];
  readonly known: Map<string, KnownDocument>;
  readonly handled: Map<string, string>;
  readonly unreadable: Map<string, string>;
}

type Sending = Pick<Pass, 'sent' | 'known' | 'isUnfinished'>;

/**
 * Sends the files that changed, four at a time, and updates `known` and `handled`. The failure of one file is reported,
 * and the other files are sent all the same.
 * @throws an error that concerns all documents, such as a wrong key
 */
async function sendAll(options: FolderSyncOptions, toSend: ToSend): Promise<Sending> {
  const { folder, onChange } = options;
  const { changed, known, handled, unreadable } = toSend;
  const sent = new Map<string, SentDocument>();
  let unchanged = 0;
  let isUnfinished = false;
  let failure: unknown;
  const orphans = Map.groupBy(toSend.gone, (file) => known.get(file)!.sha256);

  const handle = async (file: FoundFile) => {
    const inside = insideOf(folder, file.path);
    try {
      const outcome = await sendOne(options, { file, known, orphans });
      handled.set(file.path, file.stamp);
      if (outcome === undefined) return void (unchanged += 1);
      sent.set(inside, outcome.sent);
      onChange(outcome.change);
    } catch (error) {
      // The file vanished or changed while it was sent: the next pass looks at it again.
      if (error instanceof ChangedFileError || isAbsent(error)) return void (isUnfinished = true);
      if (!concernsOne(error)) return void (failure ??= error);
      // The document that was to be renamed was deleted by another program: the next pass sends the file as a new one.
      if (isNotFound(error)) return void (isUnfinished = true);
      const isFinal = error instanceof RefusalError && error.status < 500 && error.status !== 429;
      if (isFinal) handled.set(file.path, file.stamp);
      // A failure that may pass is tried again in each pass, and shown once.
      else if (unreadable.get(file.path) === file.stamp) return;
      else unreadable.set(file.path, file.stamp);
      onChange({ kind: 'refused', path: inside, failure: describeFailure(inside, error) });
    }
  };
  await pLimit(UPLOADS_AT_ONCE).map(changed, (file) => (failure === undefined ? handle(file) : undefined));
  if (failure !== undefined) throw failure as Error;
  return { sent, known: unchanged, isUnfinished };
}

interface OneFile {
  readonly file: FoundFile;
  readonly known: Map<string, KnownDocument>;
  /**
   * Paths of files that no longer exist but still have a document, by the SHA-256 of their content; null is for
   * documents without a known hash, which match no file.
   */
  readonly orphans: ReadonlyMap<string | null, string[]>;
}

/**
 * Sends a file unless its document is up to date. If a missing file's document has the same bytes, the file counts as
 * renamed: that document gets the new path and keeps its memories. If the server no longer has that document, it is
 * removed from `known`, and the error `not_found` is thrown.
 * @returns undefined if nothing was sent
 */
async function sendOne(
  { client, folder, shared, onWait }: FolderSyncOptions,
  { file: { path: file }, known, orphans }: OneFile,
): Promise<{ readonly sent: SentDocument; readonly change: Change } | undefined> {
  if (externalIdOf(file) !== file) throw new RefusalError('its path is too long', TOO_LONG);
  const sha256 = await hashFile(file);
  const own = known.get(file);
  if (own?.sha256 === sha256 && own.isAlike) return undefined;
  const inside = insideOf(folder, file);
  const from = own === undefined ? orphans.get(sha256)?.shift() : undefined;
  const replaces = from === undefined ? undefined : known.get(from)?.id;
  const sent = await uploadFile(client, file, shared, { onWait, replaces }).catch((error: unknown) => {
    if (from !== undefined && isNotFound(error)) known.delete(from);
    throw error;
  });
  known.set(file, { id: sent.id, sha256, isAlike: true, isRead: false });
  if (from === undefined) return { sent, change: { kind: own === undefined ? 'new' : 'changed', path: inside } };
  known.delete(from);
  return { sent, change: { kind: 'renamed', path: inside, from: insideOf(folder, from) } };
}

const TOO_LONG = { status: 400, code: 'invalid', retryAfterMs: undefined } as const;

// ── Documents of the folder ──────────────────────────────────────────────────────────────────────────────────────────

/**
 * Reads the documents of the folder from the server.
 * @param before what they were at the last read: of a document whose new content is being read, the hash of what was
 *   sent is kept, as the server still has that of the content before
 */
async function listDocuments(
  { client, folder, shared, onWait }: FolderSyncOptions,
  before: ReadonlyMap<string, KnownDocument> | undefined,
): Promise<Map<string, KnownDocument>> {
  const documents = new Map<string, KnownDocument>();
  const prefix = `${asPosix(folder).replace(/\/$/, '')}/`;
  for (let next: number | undefined = 0; next !== undefined;) {
    const at: number = next;
    const parameters = { user_id: shared.user, l: DOCUMENTS_A_PAGE, u: at };
    const page = await retryWhileBusy(() => client.listDocuments(parameters), onWait);
    for (const item of page.items) {
      if (item.source !== 'upload' || item.external_id?.startsWith(prefix) !== true) continue;
      const { id, state } = item;
      const isRead = state === 'ready' || state === 'empty';
      const sent = before?.get(item.external_id);
      const sha256 = !isRead && sent?.id === id ? sent.sha256 : item.sha256;
      documents.set(item.external_id, { id, sha256, isAlike: isAlike(item, shared), isRead });
    }
    next = page.next;
  }
  return documents;
}

async function remove(client: Client, id: string, user: string): Promise<void> {
  try {
    await retryWhileBusy(() => client.deleteDocument({ id, user_id: user }));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Tells whether nothing exists at a path. It is false for a file that exists and cannot be read. */
function isGone(file: string): boolean {
  try {
    fs.lstatSync(file);
    return false;
  } catch (error) {
    return isAbsent(error);
  }
}

function isAbsent(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
}

function isNotFound(error: unknown): boolean {
  return error instanceof RefusalError && error.status === 404;
}

function insideOf(folder: string, file: string): string {
  return asPosix(path.relative(folder, file));
}

function asPosix(file: string): string {
  return file.split(path.sep).join('/');
}
