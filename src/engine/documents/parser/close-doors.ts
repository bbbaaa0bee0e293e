import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Takes from this process whatever reaches beyond it: network, names, child processes, threads, other processes. Every
 * call fails from here on, by whatever way a library gets at it. Node's permission model already refuses files,
 * children and addons if the process is started with it, but knows no network. Object.prototype can no longer be
 * extended either. This cannot be undone: call it before a file is read, and after what needs those parts has started.
 *
 * Two things are replaced: the exports of the modules, for calls of libraries, and the methods that all connections go
 * through, for Node's own parts that captured the exports earlier.
 */
export function closeDoors(): void {
  // All modules are loaded before any is closed, since some build on others.
  for (const module of CLOSED_MODULES.map(builtIn)) {
    closeFunctions(module);
    for (const door of Object.values(module)) {
      if (isRecord(door) && !Array.isArray(door)) closeFunctions(door);
    }
  }
  for (const [name, exported] of CLOSED_EXPORTS) close(builtIn(name), exported);
  for (const name of CLOSED_GLOBALS) Reflect.deleteProperty(globalThis, name);
  for (const name of CLOSED_PROCESS) close(process, name);
  // The handle of stdin leads to the class that opens any pipe.
  Object.defineProperty(process, 'stdin', { value: undefined });
  // A document could leave properties behind for the next one: `__proto__` leads here, and mammoth needs that (no
  // --disable-proto).
  Object.preventExtensions(Object.prototype);
  syncBuiltinESMExports();
}

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
  'wasi',
] as const;

/** Pairs of a module and its export to close, where the module's other exports are harmless and in use. */
const CLOSED_EXPORTS: readonly (readonly [string, string])[] = [
  ['worker_threads', 'Worker'],
  ['worker_threads', 'BroadcastChannel'],
  ['v8', 'setFlagsFromString'],
  ['v8', 'writeHeapSnapshot'],
];

const CLOSED_GLOBALS = ['fetch', 'WebSocket', 'EventSource', 'BroadcastChannel'];

const CLOSED_PROCESS = ['binding', '_linkedBinding', 'dlopen', 'kill', '_kill', '_debugProcess', 'chdir'];

function builtIn(name: string): Record<string, unknown> {
  return require(name) as Record<string, unknown>;
}

/** Closes all functions of a module or object, and those methods of its classes that open a connection. */
function closeFunctions(holder: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const door = Object.getOwnPropertyDescriptor(holder, name)?.value as unknown;
    if (typeof door !== 'function') continue;
    if (isRecord(door.prototype)) closeMethods(door.prototype);
    close(holder, name);
  }
}

/**
 * Matches methods that open a connection. Node's own streams need a socket's other methods while the process has
 * pipes.
 */
const DOOR_METHODS =
  /^(_?connect|listen|bind|send|sendto|add(SourceSpecific)?Membership|resolve|reverse|lookup|request|spawn)/;

function closeMethods(prototype: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value as unknown;
    if (typeof method === 'function' && DOOR_METHODS.test(name)) close(prototype, name);
  }
}

/** Functions that replaced others, so that a class that two modules export is closed once. */
const refusals = new WeakSet<object>();

function close(holder: object, name: string): void {
  if (!(name in holder) || refusals.has((holder as Record<string, unknown>)[name] as object)) return;
  // `function` and not an arrow: a library may extend it as a class, and `new` has to fail like a call.
  const closed = function (): never {
    throw new Error(`${name} is closed to parsers`);
  };
  refusals.add(closed);
  Object.defineProperty(holder, name, { value: closed, writable: false, configurable: false, enumerable: true });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
