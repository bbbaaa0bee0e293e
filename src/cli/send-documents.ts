import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { documentItem, documentOutcomeItem } from '../api/wire.ts';
import { RefusalError, type Client } from './client.ts';

export type DocumentItem = ReturnType<typeof documentItem>;

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
 * Hands in a file under its path as external id, unless the server has it like that already: so a run that broke off goes on where it
 * was, and a file that changed replaces its old version.
 * @throws RefusalError where the server does not take it; ConnectionError; the system's error where it cannot be read
 */
export async function sendFile(client: Client, file: string, words: DocumentWords): Promise<SentDocument> {
  const known = await findKnown(client, { sha256: await hashFile(file), externalId: file, words });
  if (known !== undefined) return { id: known.id, outcome: 'known' };
  return accepted(
    await patiently(async () => client.postForm<OutcomeItem>('/memory/ingest', await formOf(file, words))),
  );
}

/** Hands in the URL of a page. @throws RefusalError, ConnectionError */
export async function sendPage(client: Client, url: string, words: DocumentWords): Promise<SentDocument> {
  const { user, session, tags, metadata } = words;
  const body = { url, user_id: user, session_id: session, tags, metadata };
  return accepted(await patiently(() => client.post<OutcomeItem>('/memory/ingest/url', body)));
}

/** Asks again for as long as the server says that it is too busy just now. */
export async function patiently<Reply>(ask: () => Promise<Reply>): Promise<Reply> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const isBusy = error instanceof RefusalError && (error.status === 429 || error.status === 503);
      const waitMs = isBusy ? (error.retryAfterMs ?? RETRY_MS) : 0;
      if (!isBusy || performance.now() + waitMs > until) throw error;
      await sleep(waitMs);
    }
  }
}

type OutcomeItem = ReturnType<typeof documentOutcomeItem>;

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
  {
    sha256,
    externalId,
    words,
  }: { readonly sha256: string; readonly externalId: string; readonly words: DocumentWords },
): Promise<DocumentItem | undefined> {
  const query = new URLSearchParams({ sha256, user_id: words.user });
  const { items } = await patiently(() => client.get<{ items: DocumentItem[] }>(`/documents?${query.toString()}`));
  return items.find(
    ({ state, sha256: hash, external_id, session_id, tags, metadata }) =>
      state !== 'failed' &&
      state !== 'cancelled' &&
      isDeepStrictEqual(
        { hash, external_id, session_id, tags, metadata },
        {
          hash: sha256,
          external_id: externalId,
          session_id: words.session,
          tags: words.tags,
          metadata: words.metadata,
        },
      ),
  );
}

/** Made anew for each attempt; nothing of the file is in memory, and one that changes while it is sent is an error. */
async function formOf(file: string, { user, session, tags, metadata }: DocumentWords): Promise<FormData> {
  const form = new FormData();
  form.append('user_id', user);
  form.append('session_id', session);
  form.append('external_id', file);
  form.append('tags', JSON.stringify(tags));
  form.append('metadata', JSON.stringify(metadata));
  // A header has no way to hold control characters.
  form.append('file', await fs.openAsBlob(file), path.basename(file).replaceAll(/\p{Cc}/gu, ' '));
  return form;
}
