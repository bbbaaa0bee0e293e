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

/** What is said of every document of one run. */
export interface DocumentWords {
  readonly user: string;
  readonly session: string;
  readonly tags: readonly string[];
  readonly metadata: object;
}

/** `known` was not even sent. */
export type SendOutcome = 'accepted' | 'replaced' | 'unchanged' | 'known';

export interface SentDocument {
  readonly id: string;
  readonly outcome: SendOutcome;
}

/** How long a server may be too busy before a document is given up (ms). */
const PATIENCE_MS = 600_000;
const RETRY_MS = 1_000;

/**
 * Hands in files of one run, each under its absolute path as external id: so a run that broke off goes on where it was, from whatever
 * folder, and a file that changed replaces its old version. What the server has like that already is not sent: the file itself, or
 * another one with the same bytes, unless that one has other content by now.
 * @returns a function that throws RefusalError where the server does not take a file; ConnectionError; the system's error where it
 *   cannot be read
 */
export function createFileSender(
  client: Client,
  words: DocumentWords,
  onWait?: OnWait,
): (file: string) => Promise<SentDocument> {
  const sending = new Map<string, Promise<unknown>>();
  return async (file) => {
    const sha256 = await hashFile(file);
    // Of files with the same bytes the first is sent, and the others find it.
    const turn = (sending.get(sha256) ?? Promise.resolve()).then(() =>
      sendFile(client, { file, sha256 }, words, onWait),
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
  words: DocumentWords,
  onWait: OnWait | undefined,
): Promise<SentDocument> {
  const known = await findKnown(client, hashed, words);
  if (known !== undefined) return { id: known.id, outcome: 'known' };
  const send = () => client.postForm<OutcomeItem>('/memory/ingest', formOf(hashed.file, words));
  return accepted(await patiently(send, onWait, () => mayMakeRoom(client)));
}

/** Documents that wait to be read take six times their size on a disk; when they are read, files like the next one fit again. */
async function mayMakeRoom(client: Client): Promise<boolean> {
  for (const state of ['queued', 'processing']) {
    if ((await client.get<{ total: number }>(`/documents?state=${state}&l=1`)).total > 0) return true;
  }
  return false;
}

/** As many characters as the server takes. */
const EXTERNAL_ID_MOST = 256;

/** The same from every folder. What is too long, or holds what no external id may, is named by its hash. */
export function externalIdOf(file: string): string {
  const absolute = path.resolve(file).split(path.sep).join('/');
  if (absolute.length <= EXTERNAL_ID_MOST && !/\p{Cc}/u.test(absolute)) return absolute;
  return `path-sha256:${createHash('sha256').update(absolute).digest('hex')}`;
}

/** Hands in the URL of a page. @throws RefusalError, ConnectionError */
export async function sendPage(
  client: Client,
  url: string,
  words: DocumentWords,
  onWait?: OnWait,
): Promise<SentDocument> {
  const { user, session, tags, metadata } = words;
  const body = { url, user_id: user, session_id: session, tags, metadata };
  return accepted(await patiently(() => client.post<OutcomeItem>('/memory/ingest/url', body), onWait));
}

/** Told, each time that a server is too busy or too full, why it says so. */
export type OnWait = (reason: string) => void;

/**
 * Asks again for as long as the server says that it is too busy just now.
 * @param mayMakeRoom whether a disk that is full (507) may have room again soon; by default such a refusal is final
 */
export async function patiently<Reply>(
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
      const isWorthIt = error.status === 429 || error.status === 503 || (error.status === 507 && (await mayMakeRoom()));
      const waitMs = error.retryAfterMs ?? RETRY_MS;
      if (!isWorthIt) throw error;
      if (performance.now() + waitMs > until) throw inVain(error);
      onWait?.(error.message);
      await sleep(waitMs);
    }
  }
}

function inVain(error: RefusalError): RefusalError {
  return new RefusalError(`${error.message}; asked for ${PATIENCE_MS / 60_000} minutes in vain`, error);
}

type OutcomeItem = DocumentOutcomeItem;

function accepted({ document_id, outcome }: OutcomeItem): SentDocument {
  return { id: document_id, outcome };
}

async function hashFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(fs.createReadStream(file), hash);
  return hash.digest('hex');
}

async function findKnown(
  client: Client,
  { file, sha256 }: HashedFile,
  words: DocumentWords,
): Promise<DocumentItem | undefined> {
  const isSame = (item: DocumentItem) => item.sha256 === sha256 && isAlike(item, words);
  const own = await listDocuments(client, { external_id: externalIdOf(file), user_id: words.user });
  // What is stored under this path with another content must go, whatever else has the new one.
  if (own.length > 0) return own.find(isSame);
  const others = await listDocuments(client, { sha256, user_id: words.user });
  for (const item of others.filter(isSame)) if (await stillHolds(item)) return item;
  return undefined;
}

async function listDocuments(client: Client, parameters: Record<string, string>): Promise<DocumentItem[]> {
  const query = new URLSearchParams(parameters).toString();
  return (await patiently(() => client.get<{ items: DocumentItem[] }>(`/documents?${query}`))).items;
}

function isAlike({ state, session_id, tags, metadata }: DocumentItem, words: DocumentWords): boolean {
  const said = { session_id: words.session, tags: words.tags, metadata: words.metadata };
  return state !== 'failed' && state !== 'cancelled' && isDeepStrictEqual({ session_id, tags, metadata }, said);
}

/** Whether a document may stand for another file: one of this machine that changed is about to be replaced. */
async function stillHolds({ external_id, bytes, sha256 }: DocumentItem): Promise<boolean> {
  if (external_id === null || !path.isAbsolute(external_id)) return true;
  const stats = fs.statSync(external_id, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) return true;
  return stats.size === bytes && (await hashFile(external_id)) === sha256;
}

function formOf(file: string, { user, session, tags, metadata }: DocumentWords): FileForm {
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
