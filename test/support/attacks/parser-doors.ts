/*
 * A parser's process that was taken over: it tries every way out that an attacker would. It runs as the entry of the
 * real child with the real flags. A file is the number of a port of this machine, on which a test listens; the text is
 * JSON that says of each way whether it was `refused` or `done`. Modules are imported before the doors close, as a
 * library's own imports would be; node:sqlite is not, as nothing in a parser imports it before.
 */
import childProcess from 'node:child_process';
import cluster from 'node:cluster';
import dgram from 'node:dgram';
import dns from 'node:dns';
import fs from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import inspector from 'node:inspector';
import Module, { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import tls from 'node:tls';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
import { serveParser } from '../../../src/engine/documents/parser/serve-parser.ts';

const { connect, Socket } = net;
const lateRequire = createRequire(import.meta.url);
const nodeFetch = globalThis.fetch;

/** Tries every way out of the parser's process. Returns `refused` or `done` for each of them, by name. */
async function tryDoors(port: number): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  for (const [name, attempt] of Object.entries(DOORS)) {
    try {
      await attempt(port);
      outcomes[name] = 'done';
    } catch {
      outcomes[name] = 'refused';
    }
  }
  return outcomes;
}

/**
 * Ways out of the parser's process, by name. A function that returns or resolves shows that this way is open. `port` is
 * a port of this machine.
 */
const DOORS: Record<string, (port: number) => unknown> = {
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
  'read beside the engine': () => fs.readFileSync(new URL('../../../README.md', import.meta.url)),
  'stat of a file': () => fs.statSync('/etc/passwd'),
  'write of a file': () => fs.writeFileSync(new URL('../../../src/engine/canary', import.meta.url), ''),
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
  'sqlite by import': () => import('node:sqlite'),
  'sqlite by require': () => lateRequire('node:sqlite') as unknown,
  'sqlite by getBuiltinModule': () => process.getBuiltinModule('node:sqlite'),
  'sqlite by Module._load': () => (Module as never as { _load: (name: string) => unknown })._load('node:sqlite'),
  'vm.runInThisContext': () => vm.runInThisContext('1') as unknown,
  'vm.Script': () => new vm.Script('1'),
  'vm by import': () => import('node:vm'),
  'vm by getBuiltinModule': () => process.getBuiltinModule('vm'),
  'worker_threads by import': () => import('node:worker_threads'),
  'cluster.fork': () => cluster.fork(),
  'cluster by import': () => import('node:cluster'),
  'inspector by import': () => import('node:inspector'),
  'inspector.Session': () => new inspector.Session().connect(),
  'repl.start': () => process.getBuiltinModule('repl').start(),
  'wasi by import': () => import('node:wasi'),
  'test by import': () => import('node:test'),
  'module.registerHooks': () => Module.registerHooks({}),
  'module.register': () => Module.register('data:text/javascript,1'),
  'data: import': () => import(`data:text/javascript,${'export default 1'}`),
  'data: require': () => lateRequire('data:text/javascript,1') as unknown,
  'blob: import': () => import(`blob:nodedata:${1}`),
  'wasm import': () => import(new URL('./none.wasm', import.meta.url).href),
  'addon by require': () => lateRequire('better-sqlite3/build/Release/better_sqlite3.node') as unknown,
  'addon by its package': () => new (lateRequire('better-sqlite3') as new (file: string) => unknown)(':memory:'),
  WebAssembly: () => new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])),
  Function: () => Reflect.construct(Function, ['return 1']),
  'Function by a constructor': () => Reflect.construct((async () => {}).constructor, ['return 1']) as unknown,
  'realpathSync, an oracle': () => fs.realpathSync('/etc/passwd'),
  'realpathSync.native, an oracle': () => fs.realpathSync.native('/etc/passwd'),
  'realpath, an oracle': () => fs.promises.realpath('/etc/passwd'),
  'existsSync, an oracle': () => fs.existsSync('/etc/passwd') || fail(),
  'accessSync, an oracle': () => fs.accessSync('/etc/passwd'),
  'opendirSync of a folder': () => fs.opendirSync('/'),
  'openAsBlob of a file': () => fs.openAsBlob('/etc/passwd'),
  'a link to a file': () => fs.linkSync('/etc/passwd', '/tmp/canary'),
  'watch of a file': () => fs.watch('/etc/passwd'),
  'a report': () => process.report.writeReport('/tmp/canary.json') && fail(),
  'process.report.getReport': () => process.report.getReport(),
  'process.setuid': () => process.setuid?.(65534),
  'process.setgid': () => process.setgid?.(65534),
  'process.loadEnvFile': () => process.loadEnvFile('/etc/environment'),
  'process.execve': () => process.execve?.('/bin/true', [], {}),
  'process._getActiveHandles': () => (process as never as { _getActiveHandles: () => unknown })._getActiveHandles(),
  'process.setUncaughtExceptionCaptureCallback': () => process.setUncaughtExceptionCaptureCallback(() => {}),
  'os.networkInterfaces': () => os.networkInterfaces(),
  'os.userInfo': () => os.userInfo(),
  'Object.prototype': () => Object.defineProperty(Object.prototype, 'canary', { value: 1 }),
};

function fail(): never {
  throw new Error('refused');
}

/** Resolves when the connection is made, and rejects when it fails. */
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

await serveParser(async ({ bytes }) => {
  const text = JSON.stringify(await tryDoors(Number(Buffer.from(bytes).toString())));
  return {
    text,
    format: 'text',
    title: '',
    authors: [],
    language: null,
    publishedAt: null,
    modifiedAt: null,
    warnings: [],
    omissions: [],
    pages: null,
    characters: text.length,
    tokens: 1,
    outline: [],
    chunks: [{ startOffset: 0, endOffset: text.length, headingPath: [], pageFrom: null, pageTo: null, tokens: 1 }],
  };
});
