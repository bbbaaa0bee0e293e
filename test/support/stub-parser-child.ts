/*
 * A parser's process whose parser does what its file says, so that a test can have it misbehave. A file is a line of
 * JSON `[deed, ...arguments]`; what the deed returns becomes the document's text, as JSON.
 */
import dgram from 'node:dgram';
import childProcess from 'node:child_process';
import dns from 'node:dns';
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { createRequire } from 'node:module';
import net from 'node:net';
import tls from 'node:tls';
import v8 from 'node:v8';
import { Worker } from 'node:worker_threads';
import { DocumentError } from '../../src/engine/documents/document-error.ts';
import { encodeHead, REPLY_FD } from '../../src/engine/documents/parser/parser-frames.ts';
import { serveParser } from '../../src/engine/documents/parser/serve-parser.ts';

type Deed = (argument: never, onPage: (done: number, pages: number) => void) => unknown;

// Taken before the doors close, as a library's own import would be.
const { connect, Socket } = net;
const lateRequire = createRequire(import.meta.url);
const nodeFetch = globalThis.fetch;
const kept: Buffer[] = [];
let calls = 0;

/** What must be refused; each returns or resolves if it is not. */
const FORBIDDEN: Record<string, (port: number) => unknown> = {
  'net.connect': (port) => connected(net.connect(port, '127.0.0.1')),
  'net.connect, taken before': (port) => connected(connect(port, '127.0.0.1')),
  'net.Socket, taken before': (port) => connected(new Socket().connect(port, '127.0.0.1')),
  'net.connect to a path': () => connected(net.connect('/run/docker.sock')),
  'net by require': (port) => connected((lateRequire('net') as typeof net).connect(port, '127.0.0.1')),
  'net by import': async (port) => connected((await import('node:net')).connect(port, '127.0.0.1')),
  'net by getBuiltinModule': (port) => connected(process.getBuiltinModule('net').connect(port, '127.0.0.1')),
  'net.createServer': () => net.createServer().listen(0),
  'tls.connect': (port) => connected(tls.connect(port, '127.0.0.1')),
  'http.get': (port) => connected(http.get({ port, host: '127.0.0.1' })),
  'http.Agent': (port) => connected(http.request({ port, agent: new http.Agent() })),
  'https.get': (port) => connected(https.get({ port, host: '127.0.0.1' })),
  'http2.connect': (port) => connected(http2.connect(`http://127.0.0.1:${port}`)),
  'dgram.createSocket': (port) => sent(dgram.createSocket('udp4'), port),
  'dgram.Socket': (port) => sent(new dgram.Socket({ type: 'udp4' } as never), port),
  'dns.lookup': () => new Promise((resolve) => dns.lookup('localhost', resolve)),
  'dns.promises.resolve': () => dns.promises.resolve('localhost'),
  'dns.Resolver': () => new dns.promises.Resolver().resolve4('localhost'),
  fetch: (port) => fetch(`http://127.0.0.1:${port}`),
  'fetch, taken before': (port) => nodeFetch(`http://127.0.0.1:${port}`),
  WebSocket: (port) => new WebSocket(`ws://127.0.0.1:${port}`),
  EventSource: (port) => new EventSource(`http://127.0.0.1:${port}`),
  'read of a file': () => fs.readFileSync('/etc/passwd'),
  'read of a folder': () => fs.readdirSync('/'),
  'read beside the engine': () => fs.readFileSync(new URL('../../README.md', import.meta.url)),
  'stat of a file': () => fs.statSync('/etc/passwd'),
  'write of a file': () => fs.writeFileSync(new URL('../../src/engine/canary', import.meta.url), ''),
  'write to the temporary folder': () => fs.mkdtempSync('/tmp/canary'),
  'child_process.spawn': () => childProcess.spawn('true'),
  'child_process.execSync': () => childProcess.execSync('true'),
  Worker: () => new Worker('1', { eval: true }),
  'Worker by require': () =>
    new (lateRequire('worker_threads') as { Worker: typeof Worker }).Worker('1', { eval: true }),
  'process.binding': () => (process as never as { binding: (name: string) => unknown }).binding('tcp_wrap'),
  'process.dlopen': () => process.dlopen({ exports: {} }, '/lib/libc.so'),
  'process.kill': () => process.kill(process.ppid, 0),
  'v8.setFlagsFromString': () => v8.setFlagsFromString('--allow-natives-syntax'),
  'inspector.open': () => process.getBuiltinModule('inspector').open(0),
  eval: () => String((0, eval)('1')),
};

const DEEDS: Record<string, Deed> = {
  echo: (text: string) => text,
  calls: () => ++calls,
  pid: () => process.pid,
  environment: () => [process.env, process.argv.length, process.cwd()],
  pages: async (pages: number, onPage) => {
    for (let page = 1; page <= pages; page++) {
      onPage(page, pages);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  },
  loop: () => {
    for (;;);
  },
  sleep: () => new Promise(() => setInterval(() => {}, 1000)),
  compute: (ms: number) => {
    for (const before = process.cpuUsage(); process.cpuUsage(before).user < ms * 1000;);
    return 'computed';
  },
  'loop after a page': (_: never, onPage) => {
    const until = performance.now() + 400;
    while (performance.now() < until);
    onPage(1, 2);
    for (;;);
  },
  'fill the heap': () => {
    for (const held: object[][] = []; ;) held.push(Array.from({ length: 10_000 }, () => ({})));
  },
  'fill buffers': () => {
    for (const held: Buffer[] = []; ;) held.push(Buffer.alloc(4 * 1024 * 1024, 1));
  },
  'fill buffers gradually': async () => {
    for (const held: Buffer[] = []; ; await new Promise(setImmediate)) held.push(Buffer.alloc(1024 * 1024, 1));
  },
  'keep buffers': () => {
    kept.push(Buffer.alloc(230 * 1024 * 1024, 1));
    return process.pid;
  },
  exit: () => process.exit(0),
  abort: () => process.abort(),
  'print much': () => {
    for (let line = 0; line < 1000; line++) {
      console.log('x'.repeat(1000));
      console.error('x'.repeat(1000));
    }
    return 'printed';
  },
  'flood frames': () => {
    for (const frames = Buffer.concat(Array.from({ length: 1_000 }, () => progressFrame(0))); ;)
      fs.writeSync(REPLY_FD, frames);
  },
  'flood bytes': () => {
    for (const frame = progressFrame(1024 * 1024); ;) fs.writeSync(REPLY_FD, frame);
  },
  'claim a large frame': () => {
    fs.writeSync(REPLY_FD, Buffer.from([2, 0, 0, 0, 255, 255, 255, 255]));
    for (;;);
  },
  'reply nonsense': () => {
    fs.writeSync(REPLY_FD, Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 123, 125]));
    for (;;);
  },
  throw: (message: string) => {
    throw new Error(message);
  },
  'throw later': (message: string) => {
    setTimeout(() => {
      throw new Error(message);
    }, 1);
    return new Promise(() => {});
  },
  'leave a bomb': () => {
    setTimeout(() => {
      throw new Error('bomb');
    }, 50);
    return 'read';
  },
  'reject unseen': async () => {
    void Promise.reject(new Error('unseen'));
    await new Promise((resolve) => setTimeout(resolve, 20));
    return 'read';
  },
  refuse: () => {
    throw new DocumentError('encrypted_document', 'The document is encrypted');
  },
  recurse: () => {
    const recurse = (): number => recurse() + 1;
    return recurse();
  },
  pollute: () => {
    const target = {} as Record<string, object>;
    for (const [key, value] of Object.entries(JSON.parse('{"__proto__":{"polluted":true}}') as object)) {
      for (const [name, polluted] of Object.entries(value as object)) Reflect.set(target[key] ?? {}, name, polluted);
    }
    return 'polluted' in {};
  },
  forbidden: async (port: number) => {
    const outcomes: Record<string, string> = {};
    for (const [name, attempt] of Object.entries(FORBIDDEN)) {
      try {
        await attempt(port);
        outcomes[name] = 'done';
      } catch {
        outcomes[name] = 'refused';
      }
    }
    return outcomes;
  },
};

function progressFrame(bodyBytes: number): Buffer {
  return Buffer.concat([encodeHead({ kind: 'page', done: 1, pages: 2 }, bodyBytes), Buffer.alloc(bodyBytes)]);
}

/** Resolves when it connects, rejects when it fails. */
function connected(emitter: NodeJS.EventEmitter): Promise<void> {
  return new Promise((resolve, reject) => {
    for (const event of ['connect', 'response', 'secureConnect']) emitter.once(event, () => resolve());
    emitter.on('error', reject);
  });
}

function sent(socket: dgram.Socket, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send('x', port, '127.0.0.1', (error) => (error ? reject(error) : resolve()));
  });
}

await serveParser(async ({ bytes }, onPage) => {
  const [deed, argument] = JSON.parse(Buffer.from(bytes).toString().trim()) as [string, never];
  const text = JSON.stringify((await DEEDS[deed]?.(argument, onPage)) ?? null);
  return {
    text,
    format: 'text',
    title: '',
    authors: [],
    language: null,
    publishedAt: null,
    modifiedAt: null,
    warnings: [],
    pages: null,
    characters: text.length,
    tokens: 1,
    outline: [],
    chunks: [{ startOffset: 0, endOffset: text.length, headingPath: [], pageFrom: null, pageTo: null, tokens: 1 }],
  };
});
