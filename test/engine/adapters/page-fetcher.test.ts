import { createHash } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import os from 'node:os';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import zlib from 'node:zlib';
import { buildConnector } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createPageFetcher, type PageFetcherOptions } from '../../../src/engine/adapters/page-fetcher.ts';
import { readConfig } from '../../../src/engine/config.ts';
import { VERSION } from '../../../src/engine/version.ts';
import { bufferBytes, serveBursts } from '../../support/behind-extensions.ts';
import { PUBLIC_ADDRESS, REFUSED_URLS } from '../../support/private-urls.ts';

type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => void;

const MAX_BYTES = 100_000;
const KNOWN = { etag: '"v1"', lastModified: 'Sat, 21 Nov 2026 10:00:00 GMT' };
const PAGE = '<!doctype html><html><head><title>T</title></head><body><p>Words</p></body></html>';

let server: http.Server;
let handle: Handler;
/** Paths as they were asked for. */
let asked: string[];
/** Addresses as they were about to be connected to. */
let connected: string[];

beforeAll(async () => {
  server = http.createServer((request, response) => {
    asked.push(request.url!);
    handle(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked = [];
  connected = [];
  handle = send(PAGE);
});

/** Names under .example are public; a connection to their address ends at the server above. */
function fetcherHere(options: Partial<PageFetcherOptions> = {}) {
  return createPageFetcher({
    timeoutMs: 20_000,
    maxBytes: MAX_BYTES,
    resolve: async (hostname) => {
      if (hostname.endsWith('.example')) return [PUBLIC_ADDRESS];
      throw Object.assign(new Error(`no such host ${hostname}`), { code: 'ENOTFOUND' });
    },
    connect: (addresses, target, callback) => {
      connected.push(...addresses);
      const { port } = server.address() as AddressInfo;
      buildConnector({})({ ...target, hostname: '127.0.0.1', port: String(port), protocol: 'http:' }, callback);
    },
    ...options,
  });
}

async function fetchPage(
  url = 'http://site.example/page',
  known: { readonly etag: string | null; readonly lastModified: string | null } | null = null,
  options: Partial<PageFetcherOptions> = {},
) {
  const file = await fetcherHere(options).fetch(url, known);
  if (file === 'unchanged') throw new Error('expected a page');
  return file;
}

function send(body: string | Buffer, headers: http.OutgoingHttpHeaders = {}, status = 200): Handler {
  return (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(body);
}

const redirect = (location: string, status = 302) => send('moved', { location }, status);
const code = (expected: string) => expect.objectContaining({ name: 'DocumentError', code: expected }) as Error;

describe('what comes back', () => {
  test('the bytes, their hash, format and charset', async () => {
    const file = await fetchPage();
    expect(Buffer.from(file.bytes).toString()).toBe(PAGE);
    expect(file).toMatchObject({ declared: 'html', charset: 'utf-8', extension: '', etag: null, lastModified: null });
    expect(Buffer.from(file.sha256)).toEqual(createHash('sha256').update(PAGE).digest());
  });

  test.each([
    ['text/html; charset="Shift_JIS"', '/page.pdf', 'html', 'Shift_JIS', ''],
    ['TEXT/HTML', '/index.php', 'html', null, ''],
    ['text/plain; charset=windows-1251', '/README.md?x=.pdf', 'markdown', 'windows-1251', 'md'],
    ['text/plain', '/notes', 'text', null, ''],
    ['application/octet-stream', '/notes.MD', 'markdown', null, 'md'],
    ['not a media type', '/notes.txt', 'text', null, 'txt'],
  ])('%s at %s is %s', async (type, path, declared, charset, extension) => {
    handle = send(declared === 'html' ? PAGE : 'Words and more words.', { 'content-type': type });
    const file = await fetchPage(`http://site.example${path}`);
    expect(file).toMatchObject({ declared, charset, extension });
  });

  test('bytes that are not what the server says are refused', async () => {
    handle = send('%PDF-1.7\n', { 'content-type': 'text/html' });
    await expect(fetchPage()).rejects.toEqual(code('unsupported_document'));
    handle = send(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), { 'content-type': 'image/png' });
    await expect(fetchPage()).rejects.toEqual(code('unsupported_document'));
  });

  test('a request says who asks and nothing else', async () => {
    let headers: http.IncomingHttpHeaders = {};
    handle = (request, response) => {
      headers = request.headers;
      send(PAGE, { 'set-cookie': 'session=1' })(request, response);
    };
    await fetchPage();
    await fetchPage();
    expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
    expect(headers['user-agent']).toBe(`cairn/${VERSION}`);
  });

  test('an empty page is a page', async () => {
    handle = send('');
    expect((await fetchPage()).bytes).toHaveLength(0);
  });
});

describe('where it goes', () => {
  test.each(REFUSED_URLS)('nothing is connected to for %j', async (url) => {
    await expect(fetcherHere().fetch(url, null)).rejects.toEqual(code('fetch_refused'));
    expect({ connected, asked }).toEqual({ connected: [], asked: [] });
  });

  test('a reason holds nothing of the URL', async () => {
    const urls = ['http://secret.test/', 'http://secret.example:81/', 'http://secret:secret@a.example/', 'secret://x'];
    handle = send('secret', {}, 500);
    for (const url of [...urls, 'http://secret.example/secret', 'http://127.0.0.1/secret']) {
      const error: unknown = await fetcherHere()
        .fetch(url, null)
        .catch((reason: unknown) => reason);
      expect(String(error)).toMatch(/^DocumentError: /);
      expect(String(error)).not.toMatch(/secret|127\.0/);
      expect(error).not.toHaveProperty('cause');
    }
  });

  test('only the public ones among the addresses of a name are tried, with the name as host', async () => {
    let host: string | undefined;
    handle = (request, response) => {
      host = request.headers.host;
      send(PAGE)(request, response);
    };
    await fetchPage('http://site.example/', null, {
      resolve: async () => ['10.0.0.1', PUBLIC_ADDRESS, '::1', '2606:4700::1'],
    });
    expect({ connected, host }).toEqual({ connected: [PUBLIC_ADDRESS, '2606:4700::1'], host: 'site.example' });
  });

  test('a server that is not there is a failure, which may pass', async () => {
    await expect(fetchPage('http://unknown.test/')).rejects.toEqual(code('fetch_failed'));
    const gone = http.createServer();
    gone.listen(0, '127.0.0.1');
    await once(gone, 'listening');
    const { port } = gone.address() as AddressInfo;
    gone.close();
    const connect: PageFetcherOptions['connect'] = (_addresses, target, callback) =>
      buildConnector({})({ ...target, hostname: '127.0.0.1', port: String(port) }, callback);
    await expect(fetchPage(undefined, null, { connect })).rejects.toMatchObject({
      code: 'fetch_failed',
      message: 'the page could not be fetched (ECONNREFUSED)',
    });
  });

  test.each([204, 206, 300, 304, 400, 401, 404, 410, 429, 500, 503])('status %i is a failure', async (status) => {
    handle = send('', {}, status);
    await expect(fetchPage()).rejects.toMatchObject({
      code: 'fetch_failed',
      message: expect.stringContaining(String(status)) as string,
    });
  });
});

describe('redirects', () => {
  const hops = (most: number): Handler => {
    return (request, response) => {
      const hop = Number(request.url!.slice(2));
      (hop < most ? redirect(`/r${hop + 1}`) : send(PAGE))(request, response);
    };
  };

  test.each([301, 302, 303, 307, 308])('%i is followed, relative to where it came from', async (status) => {
    handle = (request, response) =>
      (request.url === '/a/b' ? redirect('../c?d=1', status) : send(PAGE))(request, response);
    await fetchPage('http://site.example/a/b#part');
    expect(asked).toEqual(['/a/b', '/c?d=1']);
  });

  test('five are followed, a sixth is not', async () => {
    handle = hops(5);
    await fetchPage('http://site.example/r0');
    expect(asked).toHaveLength(6);
    asked = [];
    handle = hops(50);
    await expect(fetchPage('http://site.example/r0')).rejects.toEqual(code('fetch_refused'));
    expect(asked).toHaveLength(6);
  });

  test.each([
    'http://127.0.0.1/',
    'http://[::ffff:127.0.0.1]/',
    '//2130706433/',
    'http://private.test/',
    'http://site.example:8080/',
    'http://user:password@site.example/',
    'file:///etc/passwd',
    'ftp://site.example/',
    'gopher://site.example/',
    'data:text/html,x',
    'javascript:alert(1)',
    'http://[',
  ])('%s is not followed', async (location) => {
    handle = redirect(location);
    const resolve: PageFetcherOptions['resolve'] = async (name) =>
      name === 'private.test' ? ['192.168.0.1'] : [PUBLIC_ADDRESS];
    await expect(fetchPage(undefined, null, { resolve })).rejects.toEqual(code('fetch_refused'));
    expect({ connected, asked }).toEqual({ connected: [PUBLIC_ADDRESS], asked: ['/page'] });
  });

  test('from https to http is not followed, the other way is', async () => {
    handle = redirect('http://site.example/');
    await expect(fetchPage('https://site.example/page')).rejects.toEqual(code('fetch_refused'));
    expect(asked).toEqual(['/page']);
    handle = (request, response) =>
      (request.url === '/page' ? redirect('https://site.example/safe') : send(PAGE))(request, response);
    expect((await fetchPage()).declared).toBe('html');
  });

  test('one without a place to go, or with an endless body, holds nothing up', async () => {
    handle = send('', {}, 302);
    await expect(fetchPage()).rejects.toMatchObject({ code: 'fetch_failed' });
    handle = (request, response) => {
      if (request.url !== '/page') return send(PAGE)(request, response);
      response.writeHead(302, { location: '/next' });
      endless('moved '.repeat(1_000)).pipe(response);
    };
    expect((await fetchPage()).declared).toBe('html');
  });
});

describe('a page that is known', () => {
  const versioned: Handler = (request, response) =>
    send(PAGE, { etag: KNOWN.etag, 'last-modified': KNOWN.lastModified })(request, response);
  const conditional: Handler = (request, response) => {
    const { 'if-none-match': etag, 'if-modified-since': since } = request.headers;
    const isKnown = etag === KNOWN.etag && since === KNOWN.lastModified;
    (isKnown ? send('', {}, 304) : versioned)(request, response);
  };

  test('comes with its version, and that is enough to hear that nothing changed', async () => {
    handle = conditional;
    const { etag, lastModified } = await fetchPage();
    expect({ etag, lastModified }).toEqual(KNOWN);
    expect(await fetcherHere().fetch('http://site.example/page', { etag, lastModified })).toBe('unchanged');
    expect((await fetchPage(undefined, { ...KNOWN, etag: '"v0"' })).bytes).toHaveLength(PAGE.length);
  });

  test('a version belongs to the URL that was asked for: none is kept of or told to another one', async () => {
    const told: (string | undefined)[] = [];
    handle = (request, response) => {
      told.push(request.headers['if-none-match']);
      (request.url === '/page' ? redirect('/elsewhere') : versioned)(request, response);
    };
    expect(await fetchPage(undefined, KNOWN)).toMatchObject({ etag: null, lastModified: null });
    expect(told).toEqual([KNOWN.etag, undefined]);
  });

  test('304 to a question without a version is a failure', async () => {
    handle = send('', {}, 304);
    await expect(fetchPage(undefined, { etag: null, lastModified: null })).rejects.toEqual(code('fetch_failed'));
  });

  test('a version that could not be sent back is not kept', async () => {
    handle = send(PAGE, { etag: `"${'x'.repeat(600)}"`, 'last-modified': 'd\u00e9j\u00e0 vu' });
    expect(await fetchPage()).toMatchObject({ etag: null, lastModified: null });
  });
});

describe('bounds', () => {
  const exact = Buffer.alloc(MAX_BYTES, 'a ');
  const text = { 'content-type': 'text/plain' };

  test.each([
    ['as it is', 'identity', (bytes: Buffer) => bytes],
    ['gzip', 'gzip', (bytes: Buffer) => zlib.gzipSync(bytes)],
    ['brotli', 'br', (bytes: Buffer) => zlib.brotliCompressSync(bytes)],
  ])('a page of exactly the limit passes, one byte more does not: %s', async (_name, encoding, encode) => {
    handle = send(encode(exact), { ...text, 'content-encoding': encoding });
    expect(Buffer.from((await fetchPage()).bytes)).toEqual(exact);
    handle = send(encode(Buffer.concat([exact, Buffer.from('b')])), { ...text, 'content-encoding': encoding });
    await expect(fetchPage()).rejects.toEqual(code('document_too_large'));
  });

  test('an endless body ends at the limit', async () => {
    handle = (_request, response) => void endless('word '.repeat(2_000)).pipe(response.writeHead(200, text));
    await expect(fetchPage()).rejects.toEqual(code('document_too_large'));
  });

  const connectTo =
    (port: number): NonNullable<PageFetcherOptions['connect']> =>
    (_addresses, target, callback) =>
      buildConnector({})({ ...target, hostname: '127.0.0.1', port: String(port), protocol: 'http:' }, callback);

  test('bytes of a page that each come behind a long chunk extension do not keep that in memory', async () => {
    const before = bufferBytes();
    const { port, sent, end } = await serveBursts(400);
    const options = { timeoutMs: 120_000, maxBytes: 20 * 1024 * 1024, connect: connectTo(port) };
    const fetched = fetchPage(undefined, null, options);
    await sent;
    await expect.poll(() => bufferBytes() - before).toBeLessThan(4 * 1024 * 1024);
    end();
    expect(Buffer.from((await fetched).bytes).toString()).toBe('x'.repeat(400));
  });

  test('a server that sends far more than a page may have is left, however little of it is the page', async () => {
    const { port } = await serveBursts(100);
    const options = { timeoutMs: 120_000, maxBytes: 1_000, connect: connectTo(port) };
    await expect(fetchPage(undefined, null, options)).rejects.toEqual(code('document_too_large'));
  });

  test('a length over the limit is refused before the body', async () => {
    handle = (_request, response) => {
      response.writeHead(200, { ...text, 'content-length': MAX_BYTES + 1 });
      response.write('only the start');
    };
    await expect(fetchPage()).rejects.toEqual(code('document_too_large'));
  });

  test.each([
    ['gzip', zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    ['br', zlib.brotliCompressSync(Buffer.alloc(64 * 1024 * 1024))],
  ])('a %s bomb is left at the limit', async (encoding, bomb) => {
    expect(bomb.length).toBeLessThan(MAX_BYTES);
    handle = send(bomb, { ...text, 'content-encoding': encoding });
    await expect(fetchPage()).rejects.toEqual(code('document_too_large'));
  });

  test('a stream that decompresses to nothing for ever ends at the limit as well', async () => {
    const gzip = zlib.createGzip();
    const written: Buffer[] = [];
    gzip.on('data', (chunk: Buffer) => written.push(chunk));
    gzip.flush();
    await once(gzip, 'data');
    // An empty stored block, which may be repeated without end.
    const empty = Buffer.from([0, 0, 0, 0xff, 0xff]);
    const head = Buffer.concat(written).subarray(0, 10);
    handle = (_request, response) => {
      response.writeHead(200, { ...text, 'content-encoding': 'gzip' });
      response.write(head);
      endless(Buffer.concat(new Array<Buffer>(2_000).fill(empty))).pipe(response);
    };
    await expect(fetchPage()).rejects.toEqual(code('document_too_large'));
  });

  test.each(['deflate', 'zstd', 'gzip, gzip', 'secret'])('another encoding is refused: %s', async (encoding) => {
    handle = send(PAGE, { 'content-encoding': encoding });
    const refusal = await fetchPage().catch((error: unknown) => error);
    expect(refusal).toEqual(code('fetch_refused'));
    expect(String(refusal)).not.toContain(encoding);
  });

  test.each([
    ['that is cut off', zlib.gzipSync(PAGE.repeat(100)).subarray(0, 60), 'gzip'],
    ['that is none', Buffer.from(PAGE), 'gzip'],
    ['that is none', Buffer.from(PAGE), 'br'],
  ])('compressed data %s is a failure: %#', async (_name, body, encoding) => {
    handle = send(body, { 'content-encoding': encoding });
    await expect(fetchPage()).rejects.toEqual(code('fetch_failed'));
  });

  test('a connection that breaks off in the body is a failure', async () => {
    handle = (_request, response) => {
      response.writeHead(200, { ...text, 'content-length': 100 });
      response.write('half', () => response.destroy());
    };
    await expect(fetchPage()).rejects.toEqual(code('fetch_failed'));
  });

  test.each<[string, Handler]>([
    ['never answers', () => {}],
    ['never ends', (_request, response) => void response.writeHead(200, text).write('the start')],
    [
      'sends a byte now and then',
      (_request, response) => {
        response.writeHead(200, text);
        const drip = setInterval(() => response.write('a'), 20);
        response.on('close', () => clearInterval(drip));
      },
    ],
    [
      'redirects slowly',
      (request, response) => void setTimeout(() => redirect(`${request.url}1`)(request, response), 250),
    ],
  ])('a server that %s is left after the total time', async (_name, handler) => {
    handle = handler;
    await expect(fetchPage(undefined, null, { timeoutMs: 400 })).rejects.toMatchObject({
      code: 'fetch_failed',
      message: 'the page was not complete within 0.4 s',
    });
  });

  test('a host name that nobody answers for is left after the total time', async () => {
    const resolve: PageFetcherOptions['resolve'] = (_name, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(Object.assign(new Error('cancelled'), { code: 'ECANCELLED' })));
      });
    await expect(fetchPage(undefined, null, { timeoutMs: 200, resolve })).rejects.toEqual(code('fetch_failed'));
  });

  test('a resolver that neither answers nor hears is left after the total time', async () => {
    const resolve = () => new Promise<never>(() => {});
    await expect(fetchPage(undefined, null, { timeoutMs: 200, resolve })).rejects.toEqual(code('fetch_failed'));
  });

  test.each<[string, NonNullable<PageFetcherOptions['connect']>]>([
    [
      'throws',
      () => {
        throw Object.assign(new Error('refused'), { code: 'EMFILE' });
      },
    ],
    ['rejects', () => Promise.reject(Object.assign(new Error('refused'), { code: 'EMFILE' }))],
  ])('a connector that %s is a failure of the fetch', async (_name, connect) => {
    await expect(fetchPage(undefined, null, { connect })).rejects.toMatchObject({
      code: 'fetch_failed',
      message: 'the page could not be fetched (EMFILE)',
    });
  });

  test('headers without end are a failure', async () => {
    handle = (_request, response) => {
      response.writeHead(200, Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`x-${n}`, 'y'.repeat(200)])));
      response.end(PAGE);
    };
    await expect(fetchPage()).rejects.toEqual(code('fetch_failed'));
  });
});

describe('an end from outside', () => {
  test('a fetch that is aborted, before or under way, is no fault of the page', async () => {
    await expect(fetcherHere().fetch('http://site.example/', null, AbortSignal.abort())).rejects.toMatchObject({
      code: 'unavailable',
    });
    expect(connected).toEqual([]);
    const stop = new AbortController();
    handle = () => stop.abort();
    await expect(fetcherHere().fetch('http://site.example/', null, stop.signal)).rejects.toMatchObject({
      name: 'EngineError',
      code: 'unavailable',
    });
  });

  test('closing ends what is under way and leaves no connection', async () => {
    const fetcher = fetcherHere();
    handle = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('the start');
      void fetcher.close();
    };
    const closed = once(server, 'connection').then(([socket]) => once(socket as NodeJS.EventEmitter, 'close'));
    await expect(fetcher.fetch('http://site.example/', null)).rejects.toMatchObject({ code: 'unavailable' });
    await closed;
    await expect(fetcher.fetch('http://site.example/', null)).rejects.toMatchObject({ code: 'unavailable' });
  });

  test('fifty fetches at once do not meet', async () => {
    handle = (request, response) => send(`page ${request.url}`, { 'content-type': 'text/plain' })(request, response);
    const fetcher = fetcherHere();
    onTestFinished(() => fetcher.close());
    const pages = await Promise.all(
      Array.from({ length: 50 }, (_, n) => fetcher.fetch(`http://site.example/${n}`, null)),
    );
    expect(pages.map((page) => (page === 'unchanged' ? page : Buffer.from(page.bytes).toString()))).toEqual(
      Array.from({ length: 50 }, (_, n) => `page /${n}`),
    );
  });
});

function endless(piece: string | Buffer): Readable {
  return Readable.from(
    (function* () {
      for (;;) yield Buffer.from(piece);
    })(),
  ).on('error', () => {});
}

test('a public address of this machine itself is refused', async () => {
  const interfaces = vi.spyOn(os, 'networkInterfaces');
  onTestFinished(() => interfaces.mockRestore());
  interfaces.mockReturnValue({ eth0: [{ address: PUBLIC_ADDRESS, family: 'IPv4' } as os.NetworkInterfaceInfo] });
  handle = send(PAGE);
  await expect(fetchPage()).rejects.toMatchObject({ code: 'fetch_refused' });
  expect(connected).toEqual([]);
});

describe('a network that pages are not fetched from', () => {
  const NAT64 = '2a02:db8:64:ff9b::a00:1';
  const denied = readConfig({ OM_FETCH_DENY: `${PUBLIC_ADDRESS}/31, 2a02:db8:64:ff9b::/96` }).deniedNetworks;
  /** Names that lead to addresses, all of them public. */
  const resolve = async (hostname: string) =>
    ({ 'site.example': [PUBLIC_ADDRESS], 'nat64.example': [NAT64], 'both.example': [NAT64, '9.9.9.9'] })[hostname] ?? [
      '9.9.9.9',
    ];

  test.each(['http://site.example/', `http://${PUBLIC_ADDRESS}/`, 'http://nat64.example/', `http://[${NAT64}]/`])(
    '%s is refused, and nobody is connected to',
    async (url) => {
      await expect(fetchPage(url, null, { denied, resolve })).rejects.toMatchObject({
        code: 'fetch_refused',
        message: expect.stringContaining('OM_FETCH_DENY') as string,
      });
      expect(connected).toEqual([]);
      await fetchPage(url, null, { resolve });
    },
  );

  test('is not reached by a redirect either', async () => {
    handle = redirect('http://site.example/secret');
    await expect(fetchPage('http://other.example/', null, { denied, resolve })).rejects.toEqual(code('fetch_refused'));
    expect(connected).toEqual(['9.9.9.9']);
  });

  test('leaves the other addresses of a host', async () => {
    await fetchPage('http://both.example/', null, { denied, resolve });
    expect(connected).toEqual(['9.9.9.9']);
  });
});
