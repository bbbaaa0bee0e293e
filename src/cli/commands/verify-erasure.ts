import fs from 'node:fs';
import path from 'node:path';
import { type ErasureSearch, openErasureSearch, readRedis, type Searched } from '../../engine/for-admin.ts';
import { isEngineError } from '../../engine/index.ts';
import { CliError } from '../cli-error.ts';
import { withDataFolder } from '../data-folder.ts';
import { bytes, count, counted, dim, green, print, red, table, yellow } from '../terminal.ts';

interface VerifyOptions {
  readonly tenant?: string;
  readonly words?: string;
  readonly path?: readonly string[];
  readonly json?: boolean;
}

/**
 * Runs `cairn verify-erasure RECEIPT…`: searches the service's files, its backups, Redis and the given paths for what
 * was erased, and prints what was found in each place. An encrypted, damaged or unreadable file is
 * printed as unread, which is no failure.
 * @throws CliError if anything was found, or if the chain of receipts is broken; with exit code 2 for a wrong receipt,
 *   for a path that does not exist, for a file of words that cannot be read, or if neither receipts nor words are given
 */
export async function verifyErasure(receipts: readonly string[], options: VerifyOptions): Promise<void> {
  const words = options.words === undefined ? [] : readWords(options.words);
  if (receipts.length + words.length === 0)
    throw new CliError('name a receipt, as the delete told it, or a file with --words', { exitCode: 2 });
  for (const place of options.path ?? [])
    if (!fs.existsSync(place)) throw new CliError(`${place}: there is no such file or folder`, { exitCode: 2 });
  await withDataFolder(async ({ config, fileOf }) => {
    const search = beginSearch(fileOf(options.tenant), { receipts, words });
    const places: Searched[] = [];
    for await (const searched of search.searchTenant()) places.push(searched);
    const { paths, OM_BACKUP_FOLDER: backups, REDIS_URL: redis } = config;
    for (const place of [
      ...listServiceFiles(paths.control),
      ...(backups === undefined ? [] : [backups]),
      ...(options.path ?? []),
    ])
      for await (const searched of search.searchPath(place)) places.push(searched);
    if (redis !== undefined) places.push(await search.searchTexts('redis', readRedis(redis)));
    show(search, places, options.json ?? false);
    if (search.chain.brokenAt !== null)
      throw new CliError(`receipt ${search.chain.brokenAt} of the chain was changed or taken out`);
    const remains = places.filter(({ found }) => found > 0);
    if (remains.length > 0) throw new CliError(`found in ${counted(remains.length, 'place')}`);
  });
}

/**
 * Begins the search for erased content. For a receipt that is wrong or not known, it throws a CliError with exit code
 * 2, since 1 would mean that something was found.
 */
function beginSearch(...[file, sought]: Parameters<typeof openErasureSearch>): ErasureSearch {
  try {
    return openErasureSearch(file, sought);
  } catch (error) {
    if (isEngineError(error, 'invalid') || isEngineError(error, 'not_found'))
      throw new CliError(error.message, { exitCode: 2, cause: error });
    throw error;
  }
}

/**
 * Lists the SQLite files of the service that lie beside the control database and are no tenant's, each with its log
 * (WAL) files: that of keys and settings, those of rate limits and wrong keys, and a budget for each provider account
 * that was ever configured.
 */
function listServiceFiles(control: string): string[] {
  const start = path.basename(control).slice(0, -'control.sqlite'.length);
  const folder = path.dirname(control);
  return fs
    .readdirSync(folder)
    .filter((name) => name.startsWith(start) && /^[a-z0-9-]+\.sqlite(?:-wal|-shm)?$/.test(name.slice(start.length)))
    .map((name) => path.join(folder, name));
}

function readWords(file: string): string[] {
  try {
    return fs
      .readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
  } catch (cause) {
    throw new CliError(`${file}: expected a file with words or phrases, one a line`, { exitCode: 2, cause });
  }
}

function show(search: ErasureSearch, places: readonly Searched[], asJson: boolean): void {
  const { chain, sought, living } = search;
  if (asJson) return print(JSON.stringify({ chain, sought, living, places }));
  print(
    `${count(sought)} words and phrases, of which ${count(living)} stand in living texts, too, and are passed over`,
    `${counted(chain.records, 'receipt')} in the chain; its last hash is ${chain.head}`,
  );
  const rows = places.map(({ place, bytes: size, found, at, note }) => [
    found > 0 ? red(`found ${count(found)}`) : note === null ? green('clean') : yellow('unread'),
    bytes(size),
    place,
    note ?? (at.length === 0 ? '' : dim(`at ${at.join(', ')}`)),
  ]);
  print(...table(rows, '<><<'));
}
