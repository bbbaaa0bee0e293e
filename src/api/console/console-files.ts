/**
 * Files of the console, which `npm run build` (and `npm ci` in a checkout) built from src/console: one HTML page, and
 * files with a hash of their content in their names. They are read once and kept in memory, compressed too: about 200
 * kB in all.
 */
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { EngineError } from '../../engine/index.ts';
import { pageHeaders } from '../page-headers.ts';

/** A file with its media type, as it is and compressed with gzip. */
export interface ConsoleFile {
  readonly type: string;
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Matches every file name that Vite makes, and others like them, but none with a path or with a dot at the start. */
const NAME = /^[\w-][\w.-]{0,127}$/;

/** Folder of the built console, both for the sources and for the compiled package, whose own files lie in `dist`. */
const FOLDER = import.meta.filename.endsWith('.ts')
  ? path.resolve(import.meta.dirname, '../../../dist/console')
  : path.resolve(import.meta.dirname, '../../console');

/**
 * Headers of the console's page. It loads scripts, styles, pictures and the worker that lays out graphs as files of
 * this server alone.
 */
export const CONSOLE_HEADERS = pageHeaders({
  'style-src': "'self'",
  'img-src': "'self'",
  'worker-src': "'self'",
  'base-uri': "'none'",
});

const files = new Map<string, Promise<ConsoleFile | undefined>>();

/**
 * Returns the HTML page of the console.
 * @throws EngineError `not_found` if the console was not built
 */
export async function getConsolePage(): Promise<ConsoleFile> {
  const page = await find('index.html');
  if (page !== undefined) return page;
  throw new EngineError('not_found', 'the console comes with a built package, or with `npm ci` (`npm run prepare`)');
}

/**
 * Reads and compresses the files that the page loads, so that no request has to wait for that. Does nothing if the
 * console was not built.
 */
export async function readAhead(): Promise<void> {
  const names = await fs.promises.readdir(path.join(FOLDER, 'console')).catch(() => []);
  await Promise.all(names.map((name) => findConsoleFile(name)));
}

/** Returns a file that the page loads by its name; undefined if there is none, or its type is not among `TYPES`. */
export async function findConsoleFile(name: string): Promise<ConsoleFile | undefined> {
  return NAME.test(name) ? find(path.join('console', name)) : undefined;
}

function find(name: string): Promise<ConsoleFile | undefined> {
  const known = files.get(name);
  if (known !== undefined) return known;
  const reading = read(name);
  files.set(name, reading);
  // A missing file is not remembered: a checkout may be built while it is served, and clients can make names up.
  void reading.then((file) => file ?? files.delete(name));
  return reading;
}

async function read(name: string): Promise<ConsoleFile | undefined> {
  const type = TYPES[path.extname(name)];
  if (type === undefined) return undefined;
  try {
    const bytes = await fs.promises.readFile(path.join(FOLDER, name));
    return { type, bytes, gzipped: await promisify(gzip)(bytes) };
  } catch {
    return undefined;
  }
}
