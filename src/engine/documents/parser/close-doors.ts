import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Takes from this process whatever reaches beyond it: network, names, child processes, threads, other processes. Every call fails
 * from here on, whichever way a library came by it. Node's permission model already refuses files, children and addons where the
 * process was started with it, but knows no network. Nor can anything be added any more to what all objects inherit. Cannot be
 * undone.
 *
 * Both the exports of the modules and the methods that all connections go through are replaced: the first for what libraries
 * call, the second for what Node's own parts captured before.
 */
export function closeDoors(): void {
  // All are loaded before any is closed, as some build on others.
  for (const module of CLOSED_MODULES.map(builtIn)) {
    closeFunctions(module);
    for (const door of Object.values(module)) {
      if (isRecord(door) && !Array.isArray(door)) closeFunctions(door);
    }
  }
  for (const [name, exported] of CLOSED_EXPORTS) close(builtIn(name), exported);
  for (const name of CLOSED_GLOBALS) Reflect.deleteProperty(globalThis, name);
  for (const name of CLOSED_PROCESS) close(process, name);
  // Its handle leads to the class that opens any pipe.
  Object.defineProperty(process, 'stdin', { value: undefined });
  // What a document could leave behind for the next: `__proto__` leads here, and mammoth needs that (no --disable-proto).
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

/** Of modules whose other functions are harmless and in use. */
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

/** Closes the functions of a module or object, and the methods of its classes. */
function closeFunctions(holder: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const door = Object.getOwnPropertyDescriptor(holder, name)?.value as unknown;
    if (typeof door !== 'function') continue;
    if (isRecord(door.prototype)) closeMethods(door.prototype);
    close(holder, name);
  }
}

/** Node's own streams need the rest of a socket's methods while the process has pipes. */
const DOOR_METHODS =
  /^(_?connect|listen|bind|send|sendto|add(SourceSpecific)?Membership|resolve|reverse|lookup|request|spawn)/;

function closeMethods(prototype: Record<string, unknown>): void {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    const method = Object.getOwnPropertyDescriptor(prototype, name)?.value as unknown;
    if (typeof method === 'function' && DOOR_METHODS.test(name)) close(prototype, name);
  }
}

/** A class that two modules export comes by twice. */
const refusals = new WeakSet<object>();

function close(holder: object, name: string): void {
  if (!(name in holder) || refusals.has((holder as Record<string, unknown>)[name] as object)) return;
  // `function` and not an arrow: a library may name it as the class to extend, and `new` has to fail like a call.
  const closed = function (): never {
    throw new Error(`${name} is closed to parsers`);
  };
  refusals.add(closed);
  Object.defineProperty(holder, name, { value: closed, writable: false, configurable: false, enumerable: true });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
