import fs from 'node:fs';
import { createRequire, registerHooks, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Sandboxes this process: removes everything by which code could reach outside of it, namely network, name resolution,
 * child processes, threads and other processes. Every later call of these fails, in whatever way a library obtains
 * them. Node's permission model already refuses files, children and addons if the process is started with it, but
 * covers neither the network nor SQLite. Afterwards code can load only the built-in modules in `OPEN_MODULES` and files
 * of code, and `Object.prototype` cannot be extended. This cannot be undone. It must be called before a file is read,
 * and after everything that needs those functions has started.
 *
 * Two things are replaced in the modules that Node or a library may have loaded before: their exports, for calls of
 * libraries, and the methods through which all connections go, for Node's own code that obtained the exports earlier.
 */
export function sandboxProcess(): void {
  const openModules = new Map(OPEN_MODULES.map((name) => [name, builtIn(name)]));
  // All modules are loaded before any is closed, since some build on others.
  for (const module of CLOSED_MODULES.map(builtIn)) {
    closeFunctions(module);
    for (const member of Object.values(module)) {
      if (isRecord(member) && !Array.isArray(member)) closeFunctions(member);
    }
  }
  for (const [name, exported] of CLOSED_EXPORTS) close(builtIn(name), exported);
  guardRealPaths();
  for (const name of CLOSED_GLOBALS) Reflect.deleteProperty(globalThis, name);
  admitModules(openModules);
  for (const name of ['register', 'registerHooks', 'enableCompileCache', 'runMain']) close(builtIn('module'), name);
  for (const name of CLOSED_PROCESS) close(process, name);
  // A report of Node names the machine's network addresses and open files.
  for (const name of ['getReport', 'writeReport']) close(process.report, name);
  // The handle of stdin leads to the class that opens any pipe.
  Object.defineProperty(process, 'stdin', { value: undefined });
  // A document could leave properties behind for the next one: `__proto__` leads here, and mammoth needs that (no
  // --disable-proto).
  Object.preventExtensions(Object.prototype);
  syncBuiltinESMExports();
}

/** Built-in modules that the parsers and their libraries need. Code that loads any other one gets an error. */
export const OPEN_MODULES = [
  'assert',
  'buffer',
  'events',
  'fs',
  'fs/promises',
  'module',
  'os',
  'path',
  'path/posix',
  'path/win32',
  'perf_hooks',
  'punycode',
  'querystring',
  'stream',
  'stream/promises',
  'stream/web',
  'string_decoder',
  'timers',
  'timers/promises',
  'url',
  'util',
  'util/types',
  'zlib',
] as const;

/**
 * Restricts what code can load to the open modules and files of JavaScript, TypeScript and JSON, whether by `import`,
 * `require` or `process.getBuiltinModule`. A `data:` URL is refused, since it is code from a string.
 */
function admitModules(openModules: ReadonlyMap<string, unknown>): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context);
      const { url } = resolved;
      const isOpen = url.startsWith('node:') ? openModules.has(url.slice(5)) : CODE_FILE.test(url);
      if (!isOpen) throw refusal(specifier.slice(0, 100));
      return resolved;
    },
  });
  const getBuiltinModule = (name: string) => {
    const module = openModules.get(name.replace(/^node:/, ''));
    if (module === undefined) throw refusal(name);
    return module;
  };
  Object.defineProperty(process, 'getBuiltinModule', { value: getBuiltinModule, writable: false, configurable: false });
}

const CODE_FILE = /^file:.*\.(?:[cm]?[jt]s|json)$/;

/**
 * Makes `fs.realpathSync` work for readable paths only. Node's permission model does not check this function, so that
 * it would tell which files exist. The other forms of `realpath` are disabled.
 */
function guardRealPaths(): void {
  const { realpathSync } = fs;
  const guarded = (file: string, options?: Parameters<typeof realpathSync>[1]) => {
    if (process.permission?.has('fs.read', String(file)) === false) throw refusal('realpathSync');
    return realpathSync(file, options);
  };
  close(guarded, 'native');
  Object.defineProperty(fs, 'realpathSync', { value: guarded, writable: false, configurable: false });
  for (const holder of [fs, fs.promises]) close(holder, 'realpath');
}

/**
 * Modules whose functions and classes are disabled in place, since Node itself or a library may already have references
 * to them.
 */
const CLOSED_MODULES = [
  'net',
  'tls',
  'http',
  'https',
  'http2',
  'dgram',
  'dns',
  'dns/promises',
  'child_process',
  'cluster',
  'inspector',
  'inspector/promises',
  'repl',
  'vm',
  'wasi',
] as const;

/**
 * Single exports that are disabled, as pairs of module and export; the module's other exports are harmless and in use.
 */
const CLOSED_EXPORTS: readonly (readonly [string, string])[] = [
  ['worker_threads', 'Worker'],
  ['worker_threads', 'BroadcastChannel'],
  ['v8', 'setFlagsFromString'],
  ['v8', 'setHeapSnapshotNearHeapLimit'],
  ['v8', 'writeHeapSnapshot'],
  ['fs', 'watch'],
  ['fs', 'watchFile'],
  ['os', 'networkInterfaces'],
  ['os', 'setPriority'],
  ['os', 'userInfo'],
];

const CLOSED_GLOBALS = ['fetch', 'WebSocket', 'EventSource', 'BroadcastChannel', 'WebAssembly', 'Worker', 'navigator'];

const CLOSED_PROCESS = [
  'binding',
  '_linkedBinding',
  'dlopen',
  'execve',
  'kill',
  '_kill',
  '_debugProcess',
  '_debugEnd',
  '_getActiveHandles',
  '_getActiveRequests',
  'chdir',
  'loadEnvFile',
  'initgroups',
  'setegid',
  'seteuid',
  'setgid',
  'setgroups',
  'setuid',
  'setUncaughtExceptionCaptureCallback',
  'umask',
];

function builtIn(name: string): Record<string, unknown> {
  return require(name) as Record<string, unknown>;
}

/** Disables all functions of a module or object, and the methods of its classes that open a connection. */
function closeFunctions(holder: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const member = Object.getOwnPropertyDescriptor(holder, name)?.value as unknown;
    if (typeof member !== 'function') continue;
    if (isRecord(member.prototype)) closeMethods(member.prototype);
    close(holder, name);
  }
}

/**
 * Matches names of methods that open a connection and are disabled. A socket's other methods are not, since Node's own
 * streams need them as long as the process has pipes.
 */
const CONNECTING_METHODS =
  /^(_?connect|listen|bind|send|sendto|add(SourceSpecific)?Membership|resolve|reverse|lookup|request|spawn)/;

function closeMethods(prototype: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value as unknown;
    if (typeof method === 'function' && CONNECTING_METHODS.test(name)) close(prototype, name);
  }
}

/** Functions that have replaced disabled ones, so that a class that two modules export is replaced only once. */
const refusals = new WeakSet<object>();

function close(holder: object, name: string): void {
  if (!(name in holder) || refusals.has((holder as Record<string, unknown>)[name] as object)) return;
  // `function` and not an arrow: a library may extend it as a class, and `new` has to fail like a call.
  const closed = function (): never {
    throw refusal(name);
  };
  refusals.add(closed);
  Object.defineProperty(holder, name, { value: closed, writable: false, configurable: false, enumerable: true });
}

function refusal(name: string): Error {
  return new Error(`${name} is closed to parsers`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
