import { createHash } from 'node:crypto';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { MIMEType } from 'node:util';
import zlib from 'node:zlib';
import type { Dispatcher, request } from 'undici';
import type { Network } from '../config.ts';
import { DocumentError } from '../documents/document-error.ts';
import { SNIFFED_BYTES, sniffFormat } from '../documents/sniff.ts';
import { EngineError } from '../errors.ts';
import { inOwnMemory } from '../own-memory.ts';
import type { FetchedFile, PageFetcher } from '../ports.ts';
import { VERSION } from '../version.ts';
import {
  connectToAddress,
  type ConnectTo,
  guardedConnector,
  resolveByDns,
  type ResolveHost,
} from './guarded-connector.ts';
import { pacedReplies } from './paced-replies.ts';
import { SentTooMuch } from './paced-socket.ts';

export interface PageFetcherOptions {
  /** Time limit of one page (ms), for resolving host names, redirects and the body together. */
  readonly timeoutMs: number;
  /**
   * Greatest number of bytes of a page, both as sent and after decompression; a larger page is refused. So is a page
   * for which the server sends more than twice this number of bytes and 1 MiB, heads and the frames of chunks included.
   */
  readonly maxBytes: number;
  /** Networks from which pages are not fetched, in addition to those that are not public; none by default. */
  readonly denied?: readonly Network[];
  /** Resolves host names; by default by the DNS alone. */
  readonly resolve?: ResolveHost;
  /** Opens connections; by default to the first address that answers. */
  readonly connect?: ConnectTo;
}

/** Greatest number of redirects that are followed for one page; with more, it is refused. */
const MAX_REDIRECTS = 5;
/**
 * Ports from which pages are fetched; '' is the default port. Services at other ports are not meant to be read as
 * pages.
 */
const PORTS: ReadonlySet<string> = new Set(['', '80', '443']);
/**
 * Greatest length of a cache validator (an ETag or a Last-Modified date) that is stored, in characters; a longer one is
 * dropped.
 */
const MAX_VALIDATOR_CHARACTERS = 512;

/**
 * Creates a fetcher of pages over HTTP. Requests carry no cookies, credentials or referrer. For every request,
 * redirects included, a connection is opened only to an address that was checked just before, so that neither a
 * redirect nor a changed DNS answer leads to a private address.
 */
export function createPageFetcher({
  timeoutMs,
  maxBytes,
  denied = [],
  resolve = resolveByDns,
  connect = connectToAddress,
}: PageFetcherOptions): PageFetcher {
  const closed = new AbortController();

  return {
    async fetch(url, known, signal) {
      const stopped = AbortSignal.any([closed.signal, ...(signal === undefined ? [] : [signal])]);
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = AbortSignal.any([stopped, timeout]);
      // undici takes 5 MB in each thread, and most threads never fetch a page.
      const { Agent, request } = await import('undici');
      // Each page has its own agent, so that data which a server left in a connection never meets the next page.
      const agent = new Agent({
        connect: guardedConnector({ resolve, connect, denied, maxBytes, signal: either }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      try {
        either.throwIfAborted();
        const hop = await followRedirects(parseUrl(url), {
          known,
          dispatcher: pacedReplies(agent),
          ask: request,
          signal: either,
        });
        if (hop.response.statusCode === 304) {
          discard(hop.response);
          return 'unchanged';
        }
        return describeFile(hop, await readBody(hop.response, maxBytes, either));
      } catch (error) {
        if (stopped.aborted) throw new EngineError('unavailable', 'the fetch of a page was stopped');
        if (timeout.aborted) {
          throw new DocumentError('fetch_failed', `the page was not complete within ${timeoutMs / 1000} s`);
        }
        throw error instanceof SentTooMuch ? tooLarge(maxBytes) : describeFailure(error);
      } finally {
        await agent.destroy();
      }
    },
    async close() {
      closed.abort();
    },
  };
}

// ── Where to ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A reply to one request of a chain of redirects; its body has not been read yet. */
interface Hop {
  /** URL that the reply came from, after redirects. */
  readonly url: URL;
  readonly response: Dispatcher.ResponseData;
  /** Whether `url` was reached by a redirect. */
  readonly isRedirected: boolean;
}

/**
 * Cache validators of an earlier fetch (ETag, Last-Modified). If they are sent, a server can answer that the page is
 * unchanged.
 */
type Validators = Pick<FetchedFile, 'etag' | 'lastModified'>;

/**
 * Follows redirects up to the first reply that is no redirect. That reply must have status 200, or 304 if the
 * validators in `known` were sent.
 * @param known validators of the last fetch of the page; null if there was none
 * @throws DocumentError `fetch_failed` for another status; `fetch_refused` for more than 5 redirects, or for a redirect
 *   to a URL that must not be fetched
 */
async function followRedirects(
  start: URL,
  {
    known,
    dispatcher,
    ask,
    signal,
  }: {
    readonly known: Validators | null;
    readonly dispatcher: Dispatcher;
    readonly ask: typeof request;
    readonly signal: AbortSignal;
  },
): Promise<Hop> {
  let url = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    // Only the first request has validators: on another server the same validator may belong to another page.
    const validators = redirects === 0 ? validatorHeaders(known) : {};
    const response = await ask(url, { dispatcher, signal, headers: { ...HEADERS, ...validators } });
    const { statusCode, headers } = response;
    const isUnchanged = statusCode === 304 && Object.keys(validators).length > 0;
    if (statusCode === 200 || isUnchanged) return { url, response, isRedirected: redirects > 0 };
    discard(response);
    const location = REDIRECTS.has(statusCode) ? firstOf(headers.location) : undefined;
    if (location === undefined) {
      throw new DocumentError('fetch_failed', `the server answered ${statusCode}; a page comes with 200`);
    }
    url = parseRedirect(location, url);
  }
  throw new DocumentError('fetch_refused', `the server redirects more than ${MAX_REDIRECTS} times`);
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  'user-agent': `cairn/${VERSION}`,
  accept: 'text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, br',
};

function validatorHeaders(known: Validators | null) {
  return {
    ...(known?.etag == null ? {} : { 'if-none-match': known.etag }),
    ...(known?.lastModified == null ? {} : { 'if-modified-since': known.lastModified }),
  };
}

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null)
    throw new DocumentError('fetch_refused', 'this is no URL; expected one such as https://example.com/page');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new DocumentError('fetch_refused', 'only http and https URLs are fetched');
  }
  if (!PORTS.has(url.port)) throw new DocumentError('fetch_refused', 'only the ports 80 and 443 are fetched from');
  if (url.username !== '' || url.password !== '') {
    throw new DocumentError('fetch_refused', 'URLs with a user name or a password are not fetched; leave them out');
  }
  return url;
}

function parseRedirect(location: string, from: URL): URL {
  const url = parseUrl(location, from);
  if (from.protocol === 'https:' && url.protocol === 'http:') {
    throw new DocumentError(
      'fetch_refused',
      'the server redirects from https to http; only https to https is followed',
    );
  }
  return url;
}

/** Closes the connection of a reply without reading its body, which may be endless. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => {}).destroy();
}

// ── What came ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function readBody(
  { headers, body }: Dispatcher.ResponseData,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) chunks.push(inOwnMemory(chunk));
  };
  const limit = (source: AsyncIterable<Buffer>) => limited(source, maxBytes);
  try {
    if (Number(firstOf(headers['content-length'])) > maxBytes) throw tooLarge(maxBytes);
    const decoder = createDecoder(firstOf(headers['content-encoding']));
    // The limit applies twice: a page may be endless before it is decompressed, and after.
    if (decoder === null) await pipeline(body, limit, collect, { signal });
    else await pipeline(body, limit, decoder, limit, collect, { signal });
  } catch (error) {
    body.on('error', () => {}).destroy();
    throw error;
  }
  return Buffer.concat(chunks);
}

async function* limited(source: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const chunk of source) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    yield chunk;
  }
}

function tooLarge(maxBytes: number): DocumentError {
  return new DocumentError('document_too_large', `the page is larger than ${maxBytes / 1024 / 1024} MB`);
}

/**
 * Creates the decompressor for a content encoding; null for a body that is not compressed.
 * @throws DocumentError `fetch_refused` for an encoding other than gzip and br
 */
function createDecoder(encoding = 'identity'): zlib.Gunzip | zlib.BrotliDecompress | null {
  switch (encoding.trim().toLowerCase()) {
    case 'identity':
    case '':
      return null;
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip();
    case 'br':
      return zlib.createBrotliDecompress();
    default:
      throw new DocumentError(
        'fetch_refused',
        'the server compresses the page with neither gzip nor br, although asked to',
      );
  }
}

/**
 * Returns a fetched page with its metadata, for the parser and for the next fetch. After a redirect, the file has no
 * validators.
 */
function describeFile({ url, response: { headers }, isRedirected }: Hop, bytes: Buffer): FetchedFile {
  const { mediaType, charset } = parseContentType(firstOf(headers['content-type']));
  // The extension of a URL counts only if the server names no type: a page about a PDF often ends in .pdf, too.
  const extension = mediaType === null || mediaType === 'text/plain' ? extensionOf(url) : '';
  return {
    bytes,
    sha256: createHash('sha256').update(bytes).digest(),
    declared: sniffFormat({ start: bytes.subarray(0, SNIFFED_BYTES), mediaType, extension }),
    charset,
    extension,
    // After a redirect the validators belong to another URL than the one that the next fetch asks for.
    etag: isRedirected ? null : validatorOf(headers.etag),
    lastModified: isRedirected ? null : validatorOf(headers['last-modified']),
  };
}

/** Media types that do not tell the format of a page. */
const UNSPECIFIC: ReadonlySet<string> = new Set([
  'application/octet-stream',
  'binary/octet-stream',
  'application/x-download',
]);

function parseContentType(header: string | undefined): { mediaType: string | null; charset: string | null } {
  try {
    const { essence, params } = new MIMEType(header ?? '');
    return { mediaType: UNSPECIFIC.has(essence) ? null : essence, charset: params.get('charset') };
  } catch {
    return { mediaType: null, charset: null };
  }
}

function extensionOf(url: URL): string {
  const extension = path.posix.extname(url.pathname).slice(1).toLowerCase();
  return /^[a-z0-9]{1,16}$/.test(extension) ? extension : '';
}

/**
 * Returns the cache validator of a header, to be stored; null if there is none, if it exceeds 512 characters, or if it
 * cannot be sent back in a header.
 */
function validatorOf(header: string | string[] | undefined): string | null {
  const validator = firstOf(header);
  return validator !== undefined && /^[\x20-\x7e]+$/.test(validator) && validator.length <= MAX_VALIDATOR_CHARACTERS
    ? validator
    : null;
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/**
 * Converts an error into DocumentError `fetch_failed`; a DocumentError is returned unchanged. Messages of system errors
 * contain host names and addresses, so only the error's code is passed on.
 */
function describeFailure(error: unknown): DocumentError {
  if (error instanceof DocumentError) return error;
  const { code, name } = (error instanceof AggregateError ? error.errors[0] : error) as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND' || code === 'ENODATA') {
    return new DocumentError('fetch_failed', 'its host name is not known to the DNS');
  }
  return new DocumentError('fetch_failed', `the page could not be fetched (${code ?? name})`);
}
