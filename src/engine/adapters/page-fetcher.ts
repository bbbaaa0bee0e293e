import { createHash } from 'node:crypto';
import dns from 'node:dns/promises';
import net from 'node:net';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { MIMEType } from 'node:util';
import zlib from 'node:zlib';
import type { Agent, buildConnector, Dispatcher, request } from 'undici';
import { DocumentError } from '../documents/document-error.ts';
import { isPublicAddress } from '../documents/public-address.ts';
import { SNIFFED_BYTES, sniffFormat } from '../documents/sniff.ts';
import { EngineError } from '../errors.ts';
import type { FetchedFile, PageFetcher } from '../ports.ts';
import { VERSION } from '../version.ts';

export interface PageFetcherOptions {
  /** Total time: host names, redirects and the body. */
  readonly timeoutMs: number;
  /** Most bytes of a page, both as sent and after decompression. */
  readonly maxBytes: number;
  readonly resolve?: ResolveHost;
  readonly connect?: ConnectTo;
}

/** The addresses of a host name. Rejects with a system error where it has none. */
export type ResolveHost = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

/** Connects to one of `addresses` and to nothing else, whatever the host in `options` is called. */
export type ConnectTo = (
  addresses: readonly string[],
  options: buildConnector.Options,
  callback: buildConnector.Callback,
) => void | Promise<void>;

const REDIRECTS_MOST = 5;
/** Behind other ports are services that were never meant to be read as pages. */
const PORTS: ReadonlySet<string> = new Set(['', '80', '443']);
const VALIDATOR_CHARACTERS = 512;

/** Loaded with the first page: it takes 5 MB in each thread that could fetch one, and most never do. */
const loadUndici = () => import('undici');

/**
 * Fetches pages over HTTP with nothing of ours in the request: no cookies, no credentials, no referrer. A connection is opened only to
 * an address that was checked a moment before, on every hop, so that neither a redirect nor a resolver that changes its mind leads
 * elsewhere.
 */
export function createPageFetcher({
  timeoutMs,
  maxBytes,
  resolve = resolveByDns,
  connect = connectToAddress,
}: PageFetcherOptions): PageFetcher {
  const closed = new AbortController();

  return {
    async fetch(url, known, signal) {
      const stopped = AbortSignal.any([closed.signal, ...(signal === undefined ? [] : [signal])]);
      const timeout = AbortSignal.timeout(timeoutMs);
      const either = AbortSignal.any([stopped, timeout]);
      const { Agent, request } = await loadUndici();
      // One for each page: nothing that a page's server left behind in a connection meets the next one.
      const agent = new Agent({
        connect: guardedConnector({ resolve, connect, signal: either }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      try {
        either.throwIfAborted();
        const hop = await followRedirects(parseUrl(url), { known, agent, ask: request, signal: either });
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
        throw describeFailure(error);
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

interface Hop {
  readonly url: URL;
  readonly response: Dispatcher.ResponseData;
  readonly isRedirected: boolean;
}

/** The first reply that is no redirect: 200, or 304 to a question that held `known`. */
async function followRedirects(
  start: URL,
  {
    known,
    agent,
    ask,
    signal,
  }: {
    readonly known: { readonly etag: string | null; readonly lastModified: string | null } | null;
    readonly agent: Agent;
    readonly ask: typeof request;
    readonly signal: AbortSignal;
  },
): Promise<Hop> {
  let url = start;
  for (let redirects = 0; redirects <= REDIRECTS_MOST; redirects++) {
    // Only the first: what another page is called by its own server may be the same words.
    const validators = redirects === 0 ? validatorHeaders(known) : {};
    const response = await ask(url, { dispatcher: agent, signal, headers: { ...HEADERS, ...validators } });
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
  throw new DocumentError('fetch_refused', `the server redirects more than ${REDIRECTS_MOST} times`);
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

const HEADERS = {
  'user-agent': `cairn/${VERSION}`,
  accept: 'text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, br',
};

function validatorHeaders(known: { readonly etag: string | null; readonly lastModified: string | null } | null) {
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

/** Its connection goes with it: the body of a redirect may be endless. */
function discard({ body }: Dispatcher.ResponseData): void {
  body.on('error', () => {}).destroy();
}

// ── Connections ──────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Resolves, checks and connects in one step: the host name is not looked up a second time. Whatever throws is told to undici, which waits for an
 * answer for ever; a fetch that is over hears it from `signal`, whether or not the resolver does.
 */
function guardedConnector({
  resolve,
  connect,
  signal,
}: {
  readonly resolve: ResolveHost;
  readonly connect: ConnectTo;
  readonly signal: AbortSignal;
}): buildConnector.connector {
  return (options, callback) => {
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const aborted = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
    Promise.race([publicAddressesOf(host, { resolve, signal }), aborted])
      .then((addresses) => connect(addresses, options, callback))
      .catch((error: unknown) => callback(error instanceof Error ? error : new Error(String(error)), null));
  };
}

/** @param host without the brackets of an IPv6 address */
async function publicAddressesOf(
  host: string,
  { resolve, signal }: { readonly resolve: ResolveHost; readonly signal: AbortSignal },
): Promise<readonly string[]> {
  const addresses = net.isIP(host) === 0 ? await resolve(host, signal) : [host];
  const publicOnes = addresses.filter(isPublicAddress);
  if (publicOnes.length > 0) return publicOnes;
  throw new DocumentError(
    'fetch_refused',
    'its host has no public address; pages are fetched only from public addresses',
  );
}

/**
 * Asks the DNS alone. What stands in the host's own files is nobody's public page, search domains are not tried, and a slow server
 * blocks none of the few threads that file access shares with the system's resolver.
 */
async function resolveByDns(hostname: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new dns.Resolver();
  const cancel = () => resolver.cancel();
  signal.throwIfAborted();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0) throw (answers[0] as PromiseRejectedResult).reason;
    return addresses;
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

async function connectToAddress(
  addresses: readonly string[],
  options: buildConnector.Options,
  callback: buildConnector.Callback,
): Promise<void> {
  const { buildConnector } = await loadUndici();
  const checked = addresses.map((address) => ({ address, family: net.isIP(address) }));
  const connect = buildConnector({
    allowH2: false,
    autoSelectFamily: true,
    // Never called for an address, which is connected to as it is.
    lookup: (_hostname, { all }, reply) =>
      all ? reply(null, checked) : reply(null, checked[0]!.address, checked[0]!.family),
  });
  connect(options, callback);
}

// ── What came ────────────────────────────────────────────────────────────────────────────────────────────────────────

async function readBody(
  { headers, body }: Dispatcher.ResponseData,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) chunks.push(chunk);
  };
  const limit = (source: AsyncIterable<Buffer>) => limited(source, maxBytes);
  try {
    if (Number(firstOf(headers['content-length'])) > maxBytes) throw tooLarge(maxBytes);
    const decoder = createDecoder(firstOf(headers['content-encoding']));
    // Twice: a page may be endless before it is decompressed, and after.
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

/** null for a body that is sent as it is. */
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

function describeFile({ url, response: { headers }, isRedirected }: Hop, bytes: Buffer): FetchedFile {
  const { mediaType, charset } = parseContentType(firstOf(headers['content-type']));
  // The end of a URL says something of a file only where the server does not: a page about a PDF is often called .pdf too.
  const extension = mediaType === null || mediaType === 'text/plain' ? extensionOf(url) : '';
  return {
    bytes,
    sha256: createHash('sha256').update(bytes).digest(),
    declared: sniffFormat({ start: bytes.subarray(0, SNIFFED_BYTES), mediaType, extension }),
    charset,
    extension,
    // Those of a page that was redirected to belong to another URL than the one that is asked for next time.
    etag: isRedirected ? null : validatorOf(headers.etag),
    lastModified: isRedirected ? null : validatorOf(headers['last-modified']),
  };
}

/** Media types that say no more than: these are bytes. */
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

/** null for none, and for one that could not be sent back. */
function validatorOf(header: string | string[] | undefined): string | null {
  const validator = firstOf(header);
  return validator !== undefined && /^[\x20-\x7e]+$/.test(validator) && validator.length <= VALIDATOR_CHARACTERS
    ? validator
    : null;
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Errors of sockets, resolvers and decompressors hold host names and addresses: only their code is passed on. */
function describeFailure(error: unknown): DocumentError {
  if (error instanceof DocumentError) return error;
  const { code, name } = (error instanceof AggregateError ? error.errors[0] : error) as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND' || code === 'ENODATA') {
    return new DocumentError('fetch_failed', 'its host name is not known to the DNS');
  }
  return new DocumentError('fetch_failed', `the page could not be fetched (${code ?? name})`);
}
