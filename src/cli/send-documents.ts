import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { DocumentItem, DocumentOutcomeItem } from '../api/schemas/document-replies.ts';
import { RefusalError, type Client } from './client.ts';
import type { FileForm } from './file-form.ts';

export type { DocumentItem };

/** Fields that all documents of one run have in common. An empty user or session means none. */
export interface SharedFields {
  readonly user: string;
  readonly session: string;
  readonly tags: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/**
 * Result of sending a document. `accepted`: it is new. `replaced`: it replaces an earlier version. `unchanged`: it was
 * sent, but the server already had it. `known`: it was not sent, because the server already has it.
 */
export type SendOutcome = 'accepted' | 'replaced' | 'unchanged' | 'known';

export interface SentDocument {
  readonly id: string;
  readonly outcome: SendOutcome;
}

/**
 * Longest time for which a request is repeated while the server is busy or full (ms). Then the request fails with the
 * server's last refusal.
 */
const PATIENCE_MS = 600_000;
/** Pause before the next attempt if the server names none (ms). */
const RETRY_MS = 1_000;

/**
 * Makes a function that sends the files of one run. The external id of a file is its absolute path. So a run that was
 * interrupted can be repeated from any folder, and a changed file replaces its old version. A file is not sent if the
 * server already has it, or has another file with the same bytes and fields that is unchanged.
 * @returns a function that sends a file and throws what `uploadFile` throws
 */
export function createFileSender(
  client: Client,
  shared: SharedFields,
  onWait?: OnWait,
): (file: string) => Promise<SentDocument> {
  const sending = new Map<string, Promise<unknown>>();
  return async (file) => {
    const sha256 = await hashFile(file);
    // Files with the same bytes are sent one after the other, so that the later ones find the first.
    const turn = (sending.get(sha256) ?? Promise.resolve()).then(() =>
      sendFile(client, { file, sha256 }, shared, onWait),
    );
    sending.set(
      sha256,
      turn.catch(() => {}),
    );
    return turn;
  };
}

interface HashedFile {
  readonly file: string;
  readonly sha256: string;
}

async function sendFile(
  client: Client,
  hashed: HashedFile,
  shared: SharedFields,
  onWait: OnWait | undefined,
): Promise<SentDocument> {
  const existing = await findExisting(client, hashed, shared);
  if (existing !== undefined) return { id: existing.id, outcome: 'known' };
  return uploadFile(client, hashed.file, shared, { onWait });
}

/**
 * Sends a file, even if the server has it already. While the server is busy (429 or 503), or its disk is full (507) and
 * documents are being processed, it waits and sends the file again, for up to ten minutes.
 * @param onWait called before each new attempt
 * @param replaces id of a document that the file replaces, such as that of a renamed file; by default the server finds
 *   the document by the file's external id
 * @throws RefusalError, ConnectionError, ChangedFileError; the system's error if the file cannot be read
 */
export async function uploadFile(
  client: Client,
  file: string,
  shared: SharedFields,
  { onWait, replaces }: { readonly onWait?: OnWait | undefined; readonly replaces?: string | undefined } = {},
): Promise<SentDocument> {
  const form = formOf(file, shared);
  const send = () =>
    replaces === undefined
      ? client.sendForm<DocumentOutcomeItem>('POST', '/memory/ingest', form)
      : client.sendForm<DocumentOutcomeItem>('PUT', `/documents/${replaces}`, form);
  return toSentDocument(await retryWhileBusy(send, onWait, () => mayMakeRoom(client)));
}

/**
 * Tells whether a full disk of the server may have room again soon. That is so while documents are queued or being
 * processed, since a document takes six times its size until its processing ends.
 */
async function mayMakeRoom(client: Client): Promise<boolean> {
  for (const state of ['queued', 'processing'] as const) {
    if ((await client.listDocuments({ state, l: 1 })).total > 0) return true;
  }
  return false;
}

/** Longest external id that the server accepts, in UTF-16 code units. */
const MAX_EXTERNAL_ID = 256;

/**
 * Returns the external id of a file: its absolute path with forward slashes, or a hash of it if that is longer than 256
 * UTF-16 code units or has control characters.
 */
export function externalIdOf(file: string): string {
  const absolute = path.resolve(file).split(path.sep).join('/');
  if (absolute.length <= MAX_EXTERNAL_ID && !/\p{Cc}/u.test(absolute)) return absolute;
  return `path-sha256:${createHash('sha256').update(absolute).digest('hex')}`;
}

/**
 * Sends the URL of a web page, which the server fetches. While the server is busy (429 or 503), it waits and sends the
 * URL again, for up to ten minutes.
 * @param onWait called before each new attempt
 * @throws RefusalError, also if the server is still busy after ten minutes; ConnectionError
 */
export async function sendPage(
  client: Client,
  url: string,
  shared: SharedFields,
  onWait?: OnWait,
): Promise<SentDocument> {
  const { user, session, tags, metadata } = shared;
  const body = { url, user_id: user, session_id: session, tags, metadata };
  return toSentDocument(await retryWhileBusy(() => client.ingestPage(body) as Promise<DocumentOutcomeItem>, onWait));
}

/** Called before each new attempt, with the message of the busy or full server. */
export type OnWait = (reason: string) => void;

/**
 * Sends a request with `ask`, and again while the server answers that it is busy (429 or 503) or its disk is full
 * (507), for up to ten minutes. Between two attempts it waits as long as the server asks, or 1 s.
 * @param onWait called before each new attempt
 * @param mayMakeRoom tells whether a full disk (507) may have room again soon; by default such a refusal is final
 * @throws RefusalError for any other refusal, and if the server is still busy after ten minutes; also what `ask` throws
 */
export async function retryWhileBusy<Reply>(
  ask: () => Promise<Reply>,
  onWait?: OnWait,
  mayMakeRoom: () => Promise<boolean> = async () => false,
): Promise<Reply> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      const isTemporary =
        error.status === 429 || error.status === 503 || (error.status === 507 && (await mayMakeRoom()));
      const waitMs = error.retryAfterMs ?? RETRY_MS;
      if (!isTemporary) throw error;
      if (performance.now() + waitMs > until) throw gaveUp(error);
      onWait?.(error.message);
      await sleep(waitMs);
    }
  }
}

function gaveUp(error: RefusalError): RefusalError {
  return new RefusalError(`${error.message}; asked for ${PATIENCE_MS / 60_000} minutes in vain`, error);
}

function toSentDocument({ document_id, outcome }: DocumentOutcomeItem): SentDocument {
  return { id: document_id, outcome };
}

/** Returns the SHA-256 of a file's bytes, in hexadecimal. */
export async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(fs.createReadStream(file), hash);
  return hash.digest('hex');
}

async function findExisting(
  client: Client,
  { file, sha256 }: HashedFile,
  shared: SharedFields,
): Promise<DocumentItem | undefined> {
  const isSame = (item: DocumentItem) => item.sha256 === sha256 && isAlike(item, shared);
  const own = await listDocuments(client, { external_id: externalIdOf(file), user_id: shared.user });
  // A document under this path with other content must be replaced, even if another document has the new content.
  if (own.length > 0) return own.find(isSame);
  const others = await listDocuments(client, { sha256, user_id: shared.user });
  for (const item of others.filter(isSame)) if (await stillHolds(item)) return item;
  return undefined;
}

async function listDocuments(client: Client, parameters: Record<string, string>): Promise<DocumentItem[]> {
  return [...(await retryWhileBusy(() => client.listDocuments(parameters))).items];
}

/**
 * Tells whether a document has exactly the session, tags and metadata of `shared`, and its processing has not failed or
 * been cancelled.
 */
export function isAlike({ state, session_id, tags, metadata }: DocumentItem, shared: SharedFields): boolean {
  const expected = { session_id: shared.session, tags: shared.tags, metadata: shared.metadata };
  return state !== 'failed' && state !== 'cancelled' && isDeepStrictEqual({ session_id, tags, metadata }, expected);
}

/**
 * Tells whether a document still equals the file from which it was made. It is false if that file on this machine has
 * changed, since the document will then soon be replaced; true if this machine has no such file.
 */
async function stillHolds({ external_id, bytes, sha256 }: DocumentItem): Promise<boolean> {
  if (external_id === null || !path.isAbsolute(external_id)) return true;
  const stats = fs.statSync(external_id, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return true;
  return stats.size === bytes && (await hashFile(external_id)) === sha256;
}

function formOf(file: string, { user, session, tags, metadata }: SharedFields): FileForm {
  return {
    fields: {
      user_id: user,
      session_id: session,
      external_id: externalIdOf(file),
      tags: JSON.stringify(tags),
      metadata: JSON.stringify(metadata),
    },
    file,
  };
}
